// SPDX-License-Identifier: Apache-2.0
#pragma once

// The bodies of matrix products for each instruction set (see dispatch.h), and their order of
// additions. Neither the rows beside a row, nor tiles, nor panels of unpacked weights change this
// order.
//
// Float weights: y is one chain y = fma(w, x, y) over k in order, from 0.
//
// Codes: per group, `a` is such a chain of code * x from 0. Then y = fma(scale, a, y) and y =
// fma(bias, sum of the group's x, y). That sum adds sixteen lanes in order of k, then the lanes as
// a tree.
//
// Codes, where the set multiplies pairs of int16: x is rounded to integers times a step, which is
// the group's largest magnitude / 32512. `a` is the exact sum of code * integer, rounded to
// float32, times the step. The group's sum is the sum of the integers times the step. E2M1 codes
// are multiplied as twice their values, with half their scales. The method for the exact sum
// (cpu/gemm/winograd.h) changes no bit.
//
// bf16 weights and other codes, where the set multiplies pairs of bf16: x is rounded to bf16. A
// link of the chain takes two columns, the second of the pair first. 4-bit codes are multiplied as
// 128 + code, with fma(-128, scale, bias) as bias.
//
// bf16 weights in rows (see cpu/gemm/bf16_panels.h): each 1024 columns are sixteen such chains from 0, one
// per sixteenth pair. half_sums of vec.h reduces them to two numbers. Each is added to that of the
// 1024 columns before, and y is the sum of both.
//
// Tiles: small floats become bf16 weights too, scale * value rounded to float32, then to bf16. y is
// one chain from 0 whose links take 32 columns. A link sums the first elements of sixteen pairs in
// one chain from 0, the second ones in another, and adds the sum of both (see cpu/amx/tile.h). Affine
// codes are multiplied as integers there too.

#include "saker/kernels/layout/packed_matrix.h"

#include <cstddef>

namespace saker::kernels {

// Rows of x as they come: element (m, k) at data[m * row_stride + k * column_stride].
struct InputRows {
  const float* data = nullptr;
  std::ptrdiff_t row_stride = 0;
  std::ptrdiff_t column_stride = 1;
  int count = 0;
};

// Micro-panels: rows of x that lie interleaved and are multiplied together. Their sizes are nearly
// equal, so that each has enough chains to keep the multipliers busy.
struct MicroPanels {
  int rows = 0;  // Rows of x.
  int count = 0;

  // Rows before micro-panel `index`; first_row(count) is `rows`.
  [[gnu::always_inline]] int first_row(int index) const {
    const int extra = rows % count;
    return rows / count * index + (index < extra ? index : extra);
  }
};

// A rectangle of the result: the rows of some micro-panels, the columns of some NR blocks.
struct LinearTile {
  const std::byte* prepared = nullptr;
  MicroPanels micro_panels;
  int first_micro_panel = 0;
  int micro_panel_count = 0;  // At most LinearBodies::tile_rows rows in all.
  int first_block = 0;
  int block_count = 0;          // At most kTileBlocks.
  const float* bias = nullptr;  // [N] or null.
  float* out = nullptr;         // [rows of x, N].
};

inline constexpr int kTileBlocks = 8;

struct LinearBodies {
  int (*micro_panel_count)(const PackedMatrix& weight, int rows);  // For `rows` rows of x.
  int tile_rows;   // Maximum rows of a tile: a multiple of a full micro-panel's.
  int block_step;  // NR blocks that are multiplied together.

  PackedOrders orders;  // Orders of the weights that these bodies multiply.
  bool in_place;        // True if bf16 weights may stay as the checkpoint has them.

  // x in the form that `multiply` reads, one micro-panel after the other.
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
