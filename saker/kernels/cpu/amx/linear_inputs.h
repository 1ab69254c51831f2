// SPDX-License-Identifier: Apache-2.0
#pragma once

// Rows of x as tiles read them, rounded to bf16. A micro-panel has sixteen lines per step of 32
// columns: one line per pair of columns, with that pair of all rows. Micro-panels are equally wide:
// if their rows differ by one, the smaller ones are padded with zeros.

#include "saker/kernels/cpu/amx/tile.h"
#include "saker/kernels/cpu/gemm/prepare.h"
#include "saker/kernels/cpu/simd/transpose_lanes.h"
#include "saker/kernels/layout/lanes.h"

namespace saker::kernels::SAKER_ISA {

inline constexpr int kPanelMicroPanels = 20;  // Maximum per tile of the result.

// Whole chunks for codes, whose padding is multiplied too.
inline int tile_steps(const PackedMatrix& weight) {
  return weight.has_groups() ? weight.chunks() * (kChunkColumns / kStepColumns)
                             : (weight.columns + kStepColumns - 1) / kStepColumns;
}

inline std::ptrdiff_t line_bytes(const MicroPanels& micro_panels) {
  return micro_panels.first_row(1) * std::ptrdiff_t{sizeof(std::uint32_t)};
}

struct TileMicroPanel {
  const std::byte* inputs;  // One step after the other.
  std::ptrdiff_t stride;    // Bytes of a line.

  const std::byte* step(int index) const { return inputs + index * stride * kTilePairs; }
};

inline TileMicroPanel tile_micro_panel(
    const PackedMatrix& weight,
    const MicroPanels& micro_panels,
    const std::byte* prepared,
    int micro_panel
) {
  const std::ptrdiff_t stride = line_bytes(micro_panels);
  return {prepared + micro_panel * tile_steps(weight) * stride * kTilePairs, stride};
}

// The 32 columns of a row from column k on; zeros past the last.
inline U32x16 step_pairs(const InputRows& x, int row, int k, int columns) {
  const int count = smaller(kStepColumns, columns - k);
  if (count == kStepColumns && x.column_stride == 1) {
    const float* from = x.data + row * x.row_stride + k;
    return bf16_pairs(load(from), load(from + kLanes));
  }
  alignas(64) float values[kStepColumns] = {};
  if (count > 0) {
    copy_inputs(x, row, k, count, values);
  }
  return bf16_pairs(load(values), load(values + kLanes));
}

inline void prepare_tiles(
    const PackedMatrix& weight,
    const InputRows& x,
    const MicroPanels& micro_panels,
    int micro_panel,
    std::byte* prepared
) {
  const TileMicroPanel to = tile_micro_panel(weight, micro_panels, prepared, micro_panel);
  const int first = micro_panels.first_row(micro_panel);
  const int rows = micro_panels.first_row(micro_panel + 1) - first;
  const int width = micro_panels.first_row(1);
  auto* lines = reinterpret_cast<std::uint32_t*>(const_cast<std::byte*>(to.inputs));
  for (int step = 0; step < tile_steps(weight); ++step) {
    const int k = step * kStepColumns;
    if (width == 1) {
      store_u32(lines + step * kTilePairs, step_pairs(x, first, k, weight.columns));
      continue;
    }
    U32x16 pairs[kTileHeight];
    for (int row = 0; row < kTileHeight; ++row) {
      pairs[row] = row < rows ? step_pairs(x, first + row, k, weight.columns) : broadcast_u32(0);
    }
    transpose(pairs);
    for (const U32x16& line : pairs) {
      store_part(reinterpret_cast<float*>(lines), as_float(line), width);
      lines += width;
    }
  }
}

}  // namespace saker::kernels::SAKER_ISA
