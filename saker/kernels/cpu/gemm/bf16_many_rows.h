// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "saker/kernels/cpu/gemm/bf16_panels.h"

namespace saker::kernels::SAKER_ISA::dots {

inline constexpr int kInputs = 3;        // Rows of x multiplied by a panel at once.
inline constexpr int kTileInputs = 258;  // So many rows of 1024 columns stay in L2.
inline constexpr std::ptrdiff_t kPanelRowBytes = kPanelSteps * kStepBytes;

// A panel's rows, each aligned to a cache line. In the checkpoint they may begin anywhere in a line
// and, if K is a multiple of 2048, compete for the same few cache sets.
struct PanelCopy {
  alignas(64) std::byte rows[kPanelRows][kPanelRowBytes];

  void take(const Panel& panel) {
    for (int n = 0; n < kPanelRows; ++n) {
      const std::byte* from = panel.at + n * panel.row_bytes;
      for (int step = 0; step < panel.steps; ++step) {
        std::byte* to = rows[n] + step * kStepBytes;
        store_u32(reinterpret_cast<std::uint32_t*>(to), load_pairs(from));
        from += panel.step_bytes;
      }
    }
  }
};

// The products of a panel and kRows rows of x, with lanes added as half_sums does.
template <int kRows>
[[gnu::always_inline]] inline void multiply_panel(
    const PanelCopy& copy,
    int steps,
    const std::byte* x,
    std::size_t x_row_bytes,
    F32x16 (&y)[kRows]
) {
  F32x16 lanes[kRows][kPanelRows];
  unroll<kRows>([&](auto r) {
    unroll<kPanelRows>([&](auto n) { lanes[r.kValue][n.kValue] = zero(); });
  });
  const std::byte* words = copy.rows[0];
  for (int step = 0; step < steps; ++step) {
    U32x16 inputs[kRows];
    unroll<kRows>([&](auto r) { inputs[r.kValue] = load_pairs(x + r.kValue * x_row_bytes); });
    unroll<kPanelRows>([&](auto n) {
      const U32x16 w = load_pairs(words + n.kValue * kPanelRowBytes);
      unroll<kRows>([&](auto r) {
        F32x16& sum = lanes[r.kValue][n.kValue];
        sum = dot_bf16_pairs(sum, w, inputs[r.kValue]);
      });
    });
    words += kStepBytes;
    x += kStepBytes;
  }
  unroll<kRows>([&](auto r) { y[r.kValue] = half_sums(lanes[r.kValue]); });
}

// Rows [first, first + count) of x; `sums` holds their sums for the current half block.
struct Inputs {
  int first;
  int count;
  float (*sums)[kBlockRows];
};

// Multiplies rows [at, at + kRows) of the inputs, fewer at their end.
template <int kRows>
void multiply_inputs(
    const PackedMatrix& weight,
    const LinearTile& tile,
    Place place,
    const PanelCopy& copy,
    const Inputs& inputs,
    int at
) {
  if constexpr (kRows > 0) {
    if (inputs.count - at < kRows) {
      multiply_inputs<kRows - 1>(weight, tile, place, copy, inputs, at);
      return;
    }
    const std::size_t x_row_bytes = input_row_bytes(weight);
    const int row = inputs.first + at;
    const std::byte* x = tile.prepared + row * x_row_bytes + place.step * kStepBytes;
    const int steps = smaller(kPanelSteps, steps_of(weight) - place.step);
    F32x16 y[kRows];
    multiply_panel<kRows>(copy, steps, x, x_row_bytes, y);
    unroll<kRows>([&](auto r) {
      add_sums(weight, tile, place, row + r.kValue, y[r.kValue], inputs.sums[at + r.kValue]);
    });
  }
}

// Prefetches a panel's lines, some at a time.
struct PanelPrefetcher {
  Panel panel;
  int row = 0;
  int step = 0;

  [[gnu::always_inline]] void ask(int lines) {
    for (int i = 0; i < lines && row < kPanelRows; ++i) {
      prefetch_l2(panel.at + step * panel.step_bytes, kLineBytes);
      if (++step == panel.steps) {
        step = 0;
        ++row;
        panel.at += panel.row_bytes;
      }
    }
  }
};

// kTileInputs rows of x stay in L2 while panels pass through L1. Each panel is copied and
// multiplied by all these rows; the next one is prefetched meanwhile.
inline void multiply_many(const PackedMatrix& weight, const LinearTile& tile) {
  PanelCopy copy;
  alignas(64) float sums[kTileInputs][kBlockRows];
  const int first = tile.micro_panels.first_row(tile.first_micro_panel);
  const int end = tile.micro_panels.first_row(tile.first_micro_panel + tile.micro_panel_count);
  for (int row = first; row < end; row += kTileInputs) {
    const Inputs inputs = {row, smaller(kTileInputs, end - row), sums};
    for_each_panel(weight, tile, [&](Place place) {
      copy.take(Panel(weight, place));
      PanelPrefetcher ahead = {Panel(weight, place_after(weight, place))};
      const int groups = (inputs.count + kInputs - 1) / kInputs;
      const int lines = (kPanelRows * kPanelSteps + groups - 1) / groups;
      for (int at = 0; at < inputs.count; at += kInputs) {
        ahead.ask(lines);
        multiply_inputs<kInputs>(weight, tile, place, copy, inputs, at);
      }
    });
  }
}

}  // namespace saker::kernels::SAKER_ISA::dots
