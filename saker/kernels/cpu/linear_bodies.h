// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the matrix products of each instruction set offer (see dispatch.h), and the order of
// additions that they keep.
//
// Float weights: y is one chain of y = fma(w, x, y) over k in order, from 0.
// Codes: per group a is such a chain of code * x from 0; then y = fma(scale, a, y) and
// y = fma(bias, sum of the group's x, y). That sum adds sixteen lanes in order of k, then the
// lanes as a tree.
// Where the set multiplies pairs of 16-bit integers, x is rounded for codes to such integers times
// a step, a group's largest magnitude / 32512: a is the exact sum of code * integer as the nearest
// float32, times the step, and the group's sum is that of the integers, times the step. Codes of
// E2M1 are twice what they mean, and scales half of what they are. How the exact sum is found
// (codes/winograd.h) changes no bit.
// Where the set multiplies bf16 pairs, x is rounded to bf16 for bf16 weights and other codes, and a
// link of the chain takes two columns, the second of the pair first; 4-bit codes are multiplied as
// 128 + code, and fma(-128, scale, bias) takes the bias's place.
// Where weights of bf16 lie in rows (see dots/panels.h) each 1024 columns are sixteen such chains
// from 0, of every sixteenth pair; vec.h's half_sums makes two numbers of them, each is added to
// that of the 1024 columns before, and y is the sum of both.
// On tiles small floats are weights of bf16 too, scale * value in one rounding to float32 and then
// one to bf16; y is one chain from 0 whose links take 32 columns: the firsts of sixteen pairs in
// one chain from 0, the seconds in another, and the sum of both is added (see amx/tile.h). Affine
// codes are multiplied as integers there too. Neither the rows beside a row, nor tiles, nor panels
// of unpacked weights change this order.

#include "saker/kernels/cpu/packed_matrix.h"

#include <cstddef>

namespace saker::kernels {

// Rows of x as they come: element (m, k) at data[m * row_stride + k * column_stride].
struct InputRows {
  const float* data = nullptr;
  std::ptrdiff_t row_stride = 0;
  std::ptrdiff_t column_stride = 1;
  int count = 0;
};

// MicroPanels: rows of x that lie interleaved and are multiplied together, of nearly equal size, so
// that no micro-panel is left with too few chains to keep the multipliers busy.
struct MicroPanels {
  int rows = 0;  // Of x.
  int count = 0;

  // Rows before micro-panel `index`; first_row(count) is `rows`.
  [[gnu::always_inline]] int first_row(int index) const {
    const int extra = rows % count;
    return rows / count * index + (index < extra ? index : extra);
  }
};

// A rectangle of the result: the rows of some micro-panels, the columns of some blocks.
struct LinearTile {
  const std::byte* prepared = nullptr;
  MicroPanels micro_panels;
  int first_micro_panel = 0;
  int micro_panel_count = 0;  // Of LinearBodies::tile_rows rows at most.
  int first_block = 0;
  int block_count = 0;          // At most kTileBlocks.
  const float* bias = nullptr;  // [N] or null.
  float* out = nullptr;         // [rows of x, N].
};

inline constexpr int kTileBlocks = 8;

struct LinearBodies {
  int (*micro_panel_count)(const PackedMatrix& weight, int rows);  // For so many rows of x.
  int tile_rows;   // Most rows of a tile: a multiple of those of a full micro_panel.
  int block_step;  // Blocks that are multiplied together.

  PackedOrders orders;  // Of the weights that these bodies multiply.
  bool in_place;        // Whether bf16 weights may lie as the checkpoint has them.

  // x in the form that `multiply` reads, micro-panel after micro_panel.
  std::size_t (*prepared_bytes)(const PackedMatrix& weight, const MicroPanels& micro_panels);
  void (*prepare)(
      const PackedMatrix& weight,
      const InputRows& x,
      const MicroPanels& micro_panels,
      int micro_panel,
      std::byte* prepared
  );
  void (*multiply)(const PackedMatrix& weight, const LinearTile& tile);
};

}  // namespace saker::kernels
