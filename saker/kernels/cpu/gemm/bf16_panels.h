// SPDX-License-Identifier: Apache-2.0
#pragma once

// bf16 weights on sets that multiply pairs: rows of the weight and rows of x both lie along K. So a
// weight is multiplied where the checkpoint has it, and each lane is its own chain
// (docs/adr/0020-bf16-along-its-rows.md). A weight is cut into panels of eight rows by up to 1024
// columns, after which lanes are added.

#include "saker/kernels/cpu/gemm/tiles.h"

namespace saker::kernels::SAKER_ISA::dots {

inline constexpr int kPanelRows = 8;    // Half an NR block.
inline constexpr int kPanelSteps = 32;  // Steps of kStepColumns; such a panel fits L1.
inline constexpr std::ptrdiff_t kStepBytes = std::ptrdiff_t{2} * kStepColumns;

[[gnu::always_inline]] inline int steps_of(const PackedMatrix& weight) {
  return (weight.columns + kStepColumns - 1) / kStepColumns;
}

// A panel of a weight: of half block `half`, from `step` on.
struct Place {
  int half;
  int step;
};

// At most kPanelSteps steps of kPanelRows rows of a weight, in place.
struct Panel {
  const std::byte* at;
  std::ptrdiff_t row_bytes;
  std::ptrdiff_t step_bytes;
  int steps;

  [[gnu::always_inline]] Panel(const PackedMatrix& weight, Place place)
      : at(weight.block(place.half / 2)),
        row_bytes(weight.tile_row_bytes()),
        step_bytes(weight.tile_step_bytes()),
        steps(smaller(kPanelSteps, steps_of(weight) - place.step)) {
    at += place.half % 2 * kPanelRows * row_bytes + place.step * step_bytes;
  }
};

// The panel after this one; after the last one, itself.
[[gnu::always_inline]] inline Place place_after(const PackedMatrix& weight, Place place) {
  if (place.step + kPanelSteps < steps_of(weight)) {
    return {place.half, place.step + kPanelSteps};
  }
  return place.half + 1 < 2 * weight.blocks() ? Place{place.half + 1, 0} : place;
}

// Bytes of a prepared row of x: rows are adjacent, zero past the last column.
[[gnu::always_inline]] inline std::size_t input_row_bytes(const PackedMatrix& weight) {
  return static_cast<std::size_t>(steps_of(weight)) * kStepBytes;
}

[[gnu::always_inline]] inline U32x16 load_pairs(const std::byte* at) {
  return load_u32(reinterpret_cast<const std::uint32_t*>(at));
}

// Adds a panel's sums for one row of x and one half block, in the form of half_sums, to `sums`.
// After the last panel writes the results.
[[gnu::always_inline]] inline void add_sums(
    const PackedMatrix& weight,
    const LinearTile& tile,
    Place place,
    int row,
    F32x16 halves,
    float* sums
) {
  if (place.step > 0) {
    halves = add(load(sums), halves);
  }
  if (place.step + kPanelSteps < steps_of(weight)) {
    store(sums, halves);
    return;
  }
  const F32x16 y = whole_sums(halves);
  const int column = place.half * kPanelRows;
  const int count = smaller(kPanelRows, weight.rows - column);
  float* out = tile.out + static_cast<std::size_t>(row) * weight.rows + column;
  store_part(out, tile.bias == nullptr ? y : add(y, load_part(tile.bias + column, count)), count);
}

// Calls function with each panel of a tile, in memory order of the weight.
template <typename Function>
[[gnu::always_inline]] inline void for_each_panel(
    const PackedMatrix& weight, const LinearTile& tile, Function function
) {
  const int halves = (weight.rows + kPanelRows - 1) / kPanelRows;
  const int end = smaller(2 * (tile.first_block + tile.block_count), halves);
  for (int half = 2 * tile.first_block; half < end; ++half) {
    for (int step = 0; step < steps_of(weight); step += kPanelSteps) {
      function(Place{half, step});
    }
  }
}

}  // namespace saker::kernels::SAKER_ISA::dots
