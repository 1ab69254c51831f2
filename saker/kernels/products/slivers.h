// SPDX-License-Identifier: Apache-2.0
#pragma once

// Rows of x that are multiplied together, slivers: how many, and where they lie when they are
// prepared.

#include "saker/kernels/codes/winograd.h"
#include "saker/kernels/cpu/linear_bodies.h"
#include "saker/kernels/products/formats.h"

namespace saker::kernels::SAKER_ISA {

// What fits the registers: kSliverRows * kBlockStep sums beside their operands; for few rows, up to
// kFewRows in one sliver, kFewSums, so that there are chains enough. Slivers of a tile: the more
// rows, the less often weights are unpacked: all of a prompt's usual 512 at once; their inputs and
// sums lie in the second cache.
#if defined(SAKER_EMULATE_AVX512) || defined(__AVX512F__)
constexpr int kSliverRows = 6;
constexpr int kTileSlivers = 86;
constexpr int kBlockStep = 4;
constexpr int kFewRows = 12;
constexpr int kFewSums = 24;
constexpr int kFewGroupSums = 20;     // Of a group: those of all groups lie in memory.
constexpr bool kCodesInOrder = true;  // See blocks_for.
#elif defined(__AVX2__) || defined(SAKER_NEON)
constexpr int kSliverRows = 6;
constexpr int kTileSlivers = 20;
constexpr int kBlockStep = 1;
constexpr int kFewRows = kSliverRows;
constexpr int kFewSums = 4;
constexpr int kFewGroupSums = kFewSums;
constexpr bool kCodesInOrder = false;
#else
constexpr int kSliverRows = 2;
constexpr int kTileSlivers = 20;
constexpr int kBlockStep = 1;
constexpr int kFewRows = kSliverRows;
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
constexpr int kTileRows = kTileSlivers * kSliverRows;
static_assert(kTileBlocks % kBlockStep == 0);

constexpr int smaller(int a, int b) {
  return a < b ? a : b;
}

// Rows of a single sliver of a format, at most.
template <typename Format>
inline constexpr int kFew = kIsWinograd<Format> ? kWinogradFewRows : kFewRows;

// Rows of a format's full sliver, where there are several.
template <typename Format>
constexpr int rows_of_sliver() {
  constexpr int kRows = kIsWinograd<Format> ? kWinogradRows : kSliverRows;
  static_assert(kTileRows % kRows == 0);
  return kRows;
}

template <typename Format>
constexpr int slivers_for(int rows) {
  constexpr int kRows = rows_of_sliver<Format>();
  return rows <= kFew<Format> ? 1 : (rows + kRows - 1) / kRows;
}

// Whether slivers are such passes. Codes in planes would be widened in each.
template <typename Format>
[[gnu::always_inline]] inline bool takes_passes(const PackedMatrix& weight, int rows) {
  return weight.has_groups() && !weight.in_planes() && rows > kFew<Format> && rows <= kPassRows;
}

// Where a sliver's prepared rows lie: inputs [K / kPerOperand][rows], then of each group the sums
// of its rows and, where operands have them, their steps and what Winograd's products take away
// from sums [groups][kGroupNumbers][rows].
template <typename Input>
struct Sliver {
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
struct SliverRoom {
  Input* inputs;
  float* numbers;
  int first;  // Row of x.
  int rows;
};

template <typename Format>
auto sliver_room(
    const PackedMatrix& weight, const Slivers& slivers, int sliver, std::byte* prepared
) {
  using Input = typename Format::Operand::Input;
  const int first = slivers.first_row(sliver);
  const int rows = slivers.first_row(sliver + 1) - first;
  auto* inputs = reinterpret_cast<Input*>(prepared + first * row_bytes<Format>(weight));
  const int count = inputs_per_row<Format>(weight.columns) * rows;
  return SliverRoom<Input>{inputs, reinterpret_cast<float*>(inputs + count), first, rows};
}

template <typename Format>
auto sliver_at(const PackedMatrix& weight, const LinearTile& tile, int sliver) {
  auto* prepared = const_cast<std::byte*>(tile.prepared);
  const auto room = sliver_room<Format>(weight, tile.slivers, sliver, prepared);
  return Sliver<typename Format::Operand::Input>{room.inputs, room.numbers, room.rows};
}

}  // namespace saker::kernels::SAKER_ISA
