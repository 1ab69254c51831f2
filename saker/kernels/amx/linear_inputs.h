// SPDX-License-Identifier: Apache-2.0
#pragma once

// Rows of x as tiles read them: of each sliver, for each step of 32 columns, rows of 32 bf16 in the
// order in which the weight's format pairs columns; then the sums of groups, [groups][rows].

#include "saker/kernels/amx/linear_weights.h"
#include "saker/kernels/amx/tile.h"
#include "saker/kernels/cpu/lanes.h"
#include "saker/kernels/cpu/linear_prepare.h"

namespace saker::kernels::SAKER_ISA {

inline int tile_steps(int columns) {
  return (columns + kTileColumns - 1) / kTileColumns;
}

// A row's share of the prepared bytes. The last 64 are spare: a tile has one row of slack, since
// slivers differ by one row in size.
inline std::size_t tile_row_bytes(const PackedMatrix& weight) {
  const int sums = weight.has_groups() ? weight.groups() : 0;
  const int floats = tile_steps(weight.columns) * kTilePairs + sums;
  return 64 + static_cast<std::size_t>(floats + kLanes - 1) / kLanes * 64;
}

struct TileSliver {
  const std::byte* inputs;  // Step after step.
  const float* sums;
  int rows;

  const std::byte* step(int index) const { return inputs + index * rows * kTileStride; }
};

inline TileSliver tile_sliver(
    const PackedMatrix& weight, const Slivers& slivers, const std::byte* prepared, int sliver
) {
  const int first = slivers.first_row(sliver);
  const int rows = slivers.first_row(sliver + 1) - first;
  const std::byte* inputs = prepared + first * tile_row_bytes(weight);
  const auto* sums = reinterpret_cast<const float*>(
      inputs + static_cast<std::size_t>(tile_steps(weight.columns)) * rows * kTileStride
  );
  return {inputs, sums, rows};
}

// The 32 inputs of a row from column k on, zeros behind the last; `spare` holds them where they do
// not lie like that.
inline const float* step_inputs(
    const InputRows& x, int row, int k, int columns, float (&spare)[kTileColumns]
) {
  const int count = smaller(kTileColumns, columns - k);
  if (count == kTileColumns && x.column_stride == 1) {
    return x.data + row * x.row_stride + k;
  }
  __builtin_memset(spare, 0, sizeof(spare));
  copy_inputs(x, row, k, count, spare);
  return spare;
}

template <typename Format>
void prepare_tiles(
    const PackedMatrix& weight,
    const InputRows& x,
    const Slivers& slivers,
    int sliver,
    std::byte* prepared
) {
  const TileSliver to = tile_sliver(weight, slivers, prepared, sliver);
  const int first = slivers.first_row(sliver);
  auto* inputs = reinterpret_cast<std::uint32_t*>(const_cast<std::byte*>(to.inputs));
  auto* sums = const_cast<float*>(to.sums);
  const int group = kGrouped<Format> ? weight.group : kTileColumns;
  const F32x16 factor = broadcast(kInputFactor<Format>);
  alignas(64) float spare[kTileColumns];
  for (int row = 0; row < to.rows; ++row) {
    F32x16 sum = zero();
    for (int k = 0; k < weight.columns; k += kTileColumns) {
      const float* from = step_inputs(x, first + row, k, weight.columns, spare);
      const U32x16 low = to_bf16(mul(load(from), factor));
      const U32x16 high = to_bf16(mul(load(from + kLanes), factor));
      store_u32(
          inputs + (k / kTileColumns * to.rows + row) * kTilePairs,
          pair_bf16<Format::kPairDistance>(low, high)
      );
      sum = add(add(sum, even_bf16(low)), even_bf16(high));
      if (kGrouped<Format> && (k + kTileColumns) % group == 0) {
        sums[k / group * to.rows + row] = reduce_add(sum) / kInputFactor<Format>;
        sum = zero();
      }
    }
  }
}

}  // namespace saker::kernels::SAKER_ISA
