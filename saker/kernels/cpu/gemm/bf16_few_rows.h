// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "saker/kernels/cpu/gemm/bf16_panels.h"

namespace saker::kernels::SAKER_ISA::dots {

// Rows of a panel that are multiplied at once. With several rows of x, each load of these serves
// two rows of the panel; with fewer, memory is read fastest in order.
constexpr int rows_at_once(int inputs) {
  return inputs < 4 ? 1 : 2;
}

// The products of rows [n, n + kAtOnce) of a panel and kRows rows of x, lane by lane. Prefetches
// the memory `ahead` bytes further into L2, since L1 tracks only a few outstanding misses.
template <int kRows, int kAtOnce>
[[gnu::always_inline]] inline void multiply_panel_rows(
    const Panel& panel,
    int n,
    const std::byte* x,
    std::size_t x_row_bytes,
    std::ptrdiff_t ahead,
    F32x16 (&lanes)[kRows][kPanelRows]
) {
  F32x16 y[kRows][kAtOnce];
  unroll<kRows>([&](auto r) { unroll<kAtOnce>([&](auto i) { y[r.kValue][i.kValue] = zero(); }); });
  const std::byte* words = panel.at + n * panel.row_bytes;
  for (int step = 0; step < panel.steps; ++step) {
    U32x16 w[kAtOnce];
    unroll<kAtOnce>([&](auto i) {
      const std::byte* at = words + i.kValue * panel.row_bytes;
      w[i.kValue] = load_pairs(at);
      __builtin_prefetch(at + ahead, 0, 2);
    });
    unroll<kRows>([&](auto r) {
      const U32x16 input = load_pairs(x + r.kValue * x_row_bytes);
      unroll<kAtOnce>([&](auto i) {
        F32x16& sum = y[r.kValue][i.kValue];
        sum = dot_bf16_pairs(sum, w[i.kValue], input);
      });
    });
    words += panel.step_bytes;
    x += kStepBytes;
  }
  unroll<kRows>([&](auto r) {
    unroll<kAtOnce>([&](auto i) { lanes[r.kValue][n + i.kValue] = y[r.kValue][i.kValue]; });
  });
}

// Multiplies one or two rows of the weight at a time by all rows of x. Meanwhile prefetches the
// same rows of the next panel.
template <int kRows>
void multiply_few(const PackedMatrix& weight, const LinearTile& tile) {
  constexpr int kAtOnce = rows_at_once(kRows);
  const std::size_t x_row_bytes = input_row_bytes(weight);
  alignas(64) float sums[kRows][kBlockRows];
  for_each_panel(weight, tile, [&](Place place) {
    const Panel panel(weight, place);
    const std::byte* x = tile.prepared + place.step * kStepBytes;
    const std::ptrdiff_t ahead = Panel(weight, place_after(weight, place)).at - panel.at;
    F32x16 lanes[kRows][kPanelRows];
    for (int n = 0; n < kPanelRows; n += kAtOnce) {
      multiply_panel_rows<kRows, kAtOnce>(panel, n, x, x_row_bytes, ahead, lanes);
    }
    unroll<kRows>([&](auto r) {
      add_sums(weight, tile, place, r.kValue, half_sums(lanes[r.kValue]), sums[r.kValue]);
    });
  });
}

}  // namespace saker::kernels::SAKER_ISA::dots
