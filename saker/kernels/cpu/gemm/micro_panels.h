// SPDX-License-Identifier: Apache-2.0
#pragma once

// Micro-panels, the rows of x that are multiplied together: how many there are, and their layout
// once prepared.

#include "saker/kernels/cpu/dispatch/linear_bodies.h"
#include "saker/kernels/cpu/gemm/formats.h"
#include "saker/kernels/cpu/gemm/winograd.h"

namespace saker::kernels::SAKER_ISA {

// kMicroPanelRows * kBlockStep sums and their operands fit the registers. With few rows, one
// micro-panel holds up to kFewRows rows and kFewSums sums, for enough independent chains. The
// kTileMicroPanels micro-panels of a tile share one unpacking of the weights: all 512 rows of a
// usual prefill chunk at once. Their inputs and sums stay in L2.
#if defined(SAKER_EMULATE_AVX512) || defined(__AVX512F__)
constexpr int kMicroPanelRows = 6;
constexpr int kTileMicroPanels = 86;
constexpr int kBlockStep = 4;
constexpr int kFewRows = 12;
constexpr int kFewSums = 24;
constexpr int kFewGroupSums = 20;     // Per group; sums over all groups are in memory.
constexpr bool kCodesInOrder = true;  // See blocks_for.
#elif defined(__AVX2__) || defined(SAKER_NEON)
constexpr int kMicroPanelRows = 6;
constexpr int kTileMicroPanels = 20;
constexpr int kBlockStep = 1;
constexpr int kFewRows = kMicroPanelRows;
constexpr int kFewSums = 4;
constexpr int kFewGroupSums = kFewSums;
constexpr bool kCodesInOrder = false;
#else
constexpr int kMicroPanelRows = 2;
constexpr int kTileMicroPanels = 20;
constexpr int kBlockStep = 1;
constexpr int kFewRows = kMicroPanelRows;
constexpr int kFewSums = 2;
constexpr int kFewGroupSums = kFewSums;
constexpr bool kCodesInOrder = false;
#endif
// With codes, more than kFew and at most kPassRows rows of x take passes of at most kPass rows. For
// so few rows that is faster than unpacking a panel, but not in passes of two.
constexpr int kPass = kBf16Dot && kFewRows > 8 ? 8 : kFewRows;
constexpr int kPassRows = kPass >= 6 ? 4 * kPass : 0;
constexpr int kByteRows = 4;   // Up to so many rows of x, codes as bytes are faster, see FewRows.
constexpr int kRowBlocks = 4;  // Maximum blocks in flight for few rows.
constexpr int kPanelColumns = 256;  // A multiple of every group size.
constexpr int kTileRows = kTileMicroPanels * kMicroPanelRows;
static_assert(kTileBlocks % kBlockStep == 0);

constexpr int smaller(int a, int b) {
  return a < b ? a : b;
}

// Maximum rows of a format's single micro-panel. More rows of narrow codes are as fast with a panel.
template <typename Format>
inline constexpr int kFew = kIsWinograd<Format> ? kWinogradFewRows
                            : kIsNarrow<Format> ? smaller(kFewRows, 6)
                                                : kFewRows;

// Rows of a format's full micro-panel, where there are several micro-panels.
template <typename Format>
constexpr int rows_of_micro_panel() {
  constexpr int kRows = kIsWinograd<Format> ? kWinogradRows : kMicroPanelRows;
  static_assert(kTileRows % kRows == 0);
  return kRows;
}

template <typename Format>
constexpr int micro_panels_for(int rows) {
  constexpr int kRows = rows_of_micro_panel<Format>();
  return rows <= kFew<Format> ? 1 : (rows + kRows - 1) / kRows;
}

// True if micro-panels are such passes. Narrow codes would be unpacked in each pass.
template <typename Format>
[[gnu::always_inline]] inline bool takes_passes(const PackedMatrix& weight, int rows) {
  return weight.has_groups() && !weight.is_narrow() && rows > kFew<Format> && rows <= kPassRows;
}

// The prepared rows of a micro-panel. `inputs` is [K / kPerOperand][rows]. `numbers` is
// [groups][kGroupNumbers][rows]: per group the sums of its rows, their steps (if operands have
// steps), and the start values of Winograd's sums.
template <typename Input>
struct MicroPanel {
  const Input* inputs;
  const float* numbers;
  int rows;
};

template <typename Format>
constexpr int kGroupNumbers = kIsWinograd<Format>       ? 3
                              : Format::Operand::kSteps ? 2
                                                        : 1;

template <typename Format>
constexpr int inputs_per_row(int columns) {
  constexpr int kPerOperand = Format::Operand::kPerOperand;
  return (columns + kPerOperand - 1) / kPerOperand;
}

template <typename Format>
std::size_t row_bytes(const PackedMatrix& weight) {
  const int numbers = weight.has_groups() ? weight.groups() * kGroupNumbers<Format> : 0;
  return sizeof(typename Format::Operand::Input) *
             static_cast<std::size_t>(inputs_per_row<Format>(weight.columns)) +
         sizeof(float) * static_cast<std::size_t>(numbers);
}

// The memory of a MicroPanel, for writing.
template <typename Input>
struct MicroPanelRoom {
  Input* inputs;
  float* numbers;
  int first;  // Its first row of x.
  int rows;
};

template <typename Format>
auto micro_panel_room(
    const PackedMatrix& weight,
    const MicroPanels& micro_panels,
    int micro_panel,
    std::byte* prepared
) {
  using Input = typename Format::Operand::Input;
  const int first = micro_panels.first_row(micro_panel);
  const int rows = micro_panels.first_row(micro_panel + 1) - first;
  auto* inputs = reinterpret_cast<Input*>(prepared + first * row_bytes<Format>(weight));
  const int count = inputs_per_row<Format>(weight.columns) * rows;
  return MicroPanelRoom<Input>{inputs, reinterpret_cast<float*>(inputs + count), first, rows};
}

template <typename Format>
auto micro_panel_at(const PackedMatrix& weight, const LinearTile& tile, int micro_panel) {
  auto* prepared = const_cast<std::byte*>(tile.prepared);
  const auto room = micro_panel_room<Format>(weight, tile.micro_panels, micro_panel, prepared);
  return MicroPanel<typename Format::Operand::Input>{room.inputs, room.numbers, room.rows};
}

}  // namespace saker::kernels::SAKER_ISA
