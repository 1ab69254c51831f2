// SPDX-License-Identifier: Apache-2.0
#pragma once

// Rows of x that are multiplied together, micro-panels: how many, and where they lie when they are
// prepared.

#include "saker/kernels/codes/winograd.h"
#include "saker/kernels/cpu/linear_bodies.h"
#include "saker/kernels/products/formats.h"

namespace saker::kernels::SAKER_ISA {

// What fits the registers: kMicroPanelRows * kBlockStep sums beside their operands; for few rows, up to
// kFewRows in one micro-panel, kFewSums, so that there are chains enough. MicroPanels of a tile: the more
// rows, the less often weights are unpacked: all of a prompt's usual 512 at once; their inputs and
// sums lie in the second cache.
#if defined(SAKER_EMULATE_AVX512) || defined(__AVX512F__)
constexpr int kMicroPanelRows = 6;
constexpr int kTileMicroPanels = 86;
constexpr int kBlockStep = 4;
constexpr int kFewRows = 12;
constexpr int kFewSums = 24;
constexpr int kFewGroupSums = 20;     // Of a group: those of all groups lie in memory.
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
// Rows of x times codes, more than kFew and at most kPassRows of them, take passes of kPass
// rows at most, which is faster than to unpack a panel for so few; but not passes of two.
constexpr int kPass = kBf16Dot && kFewRows > 8 ? 8 : kFewRows;
constexpr int kPassRows = kPass >= 6 ? 4 * kPass : 0;
constexpr int kByteRows = 4;   // Of x, at most, that are faster with codes as bytes, see FewRows.
constexpr int kRowBlocks = 4;  // Blocks in flight for few rows, at most.
constexpr int kPanelColumns = 256;  // A multiple of every group.
constexpr int kTileRows = kTileMicroPanels * kMicroPanelRows;
static_assert(kTileBlocks % kBlockStep == 0);

constexpr int smaller(int a, int b) {
  return a < b ? a : b;
}

// Rows of a single micro-panel of a format, at most.
template <typename Format>
inline constexpr int kFew = kIsWinograd<Format> ? kWinogradFewRows : kFewRows;

// Rows of a format's full micro-panel, where there are several.
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

// Whether micro-panels are such passes. Codes in planes would be widened in each.
template <typename Format>
[[gnu::always_inline]] inline bool takes_passes(const PackedMatrix& weight, int rows) {
  return weight.has_groups() && !weight.in_planes() && rows > kFew<Format> && rows <= kPassRows;
}

// Where a micro-panel's prepared rows lie: inputs [K / kPerOperand][rows], then of each group the sums
// of its rows and, where operands have them, their steps and what Winograd's products take away
// from sums [groups][kGroupNumbers][rows].
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

// The same to be written.
template <typename Input>
struct MicroPanelRoom {
  Input* inputs;
  float* numbers;
  int first;  // Row of x.
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
