// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "saker/kernels/dots/panels.h"

namespace saker::kernels::SAKER_ISA::dots {

// The products of row n of a panel and kRows rows of x, lane by lane. What lies `ahead` bytes
// further is asked for meanwhile.
template <int kRows>
[[gnu::always_inline]] inline void multiply_row(
    const Panel& panel,
    int n,
    const std::byte* x,
    std::size_t x_row_bytes,
    std::ptrdiff_t ahead,
    F32x16 (&lanes)[kRows][kPanelRows]
) {
  F32x16 y[kRows];
  unroll<kRows>([&](auto r) { y[r.kValue] = zero(); });
  const std::byte* words = panel.at + n * panel.row_bytes;
  for (int step = 0; step < panel.steps; ++step) {
    const U32x16 w = load_pairs(words);
    __builtin_prefetch(words + ahead);
    unroll<kRows>([&](auto r) {
      y[r.kValue] = dot_bf16_pairs(y[r.kValue], w, load_pairs(x + r.kValue * x_row_bytes));
    });
    words += panel.step_bytes;
    x += kStepBytes;
  }
  unroll<kRows>([&](auto r) { lanes[r.kValue][n] = y[r.kValue]; });
}

// One row of the weight after the other, since memory is read fastest in order, times all rows of
// x; meanwhile the same row of the panel behind is asked for.
template <int kRows>
void multiply_few(const PackedMatrix& weight, const LinearTile& tile) {
  const std::size_t x_row_bytes = input_row_bytes(weight);
  alignas(64) float sums[kRows][kBlockRows];
  for_each_panel(weight, tile, [&](Place place) {
    const Panel panel(weight, place);
    const std::byte* x = tile.prepared + place.step * kStepBytes;
    const std::ptrdiff_t ahead = Panel(weight, place_after(weight, place)).at - panel.at;
    F32x16 lanes[kRows][kPanelRows];
    for (int n = 0; n < kPanelRows; ++n) {
      multiply_row<kRows>(panel, n, x, x_row_bytes, ahead, lanes);
    }
    unroll<kRows>([&](auto r) {
      add_sums(weight, tile, place, r.kValue, half_sums(lanes[r.kValue]), sums[r.kValue]);
    });
  });
}

}  // namespace saker::kernels::SAKER_ISA::dots
