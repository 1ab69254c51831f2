// SPDX-License-Identifier: Apache-2.0
// int8 products on vectors, sixteen outputs side by side.
//
// The processor multiplies unsigned bytes by signed ones. So 128 is added to x's codes, and 128
// times the sum of the weight's codes is subtracted from the panel's sum.
#include "saker/kernels/layout/lanes.h"

#include "saker/kernels/cpu/int8/weight_columns.h"

namespace saker::kernels::SAKER_ISA {

extern const LinearBodies int8_linear_bodies;

namespace int8 {
namespace {

constexpr std::uint32_t kOffsets = 0x80808080U;  // 128 for each of four codes.

int quads(int columns) {
  return (columns + kQuad - 1) / kQuad;
}

// Bytes of a prepared row: its codes in fours, and a scale per panel.
std::size_t row_bytes(const PackedMatrix& weight) {
  return sizeof(std::uint32_t) *
         static_cast<std::size_t>(quads(weight.columns) + panels(weight.columns));
}

// A micro-panel's rows: codes [quads][rows], then scales [panels][rows].
struct PreparedMicroPanel {
  const std::uint32_t* codes;
  const float* scales;
  int rows;
};

PreparedMicroPanel micro_panel_at(
    const PackedMatrix& weight, const LinearTile& tile, int micro_panel
) {
  const int first = tile.micro_panels.first_row(micro_panel);
  const int rows = tile.micro_panels.first_row(micro_panel + 1) - first;
  const std::byte* at = tile.prepared + static_cast<std::size_t>(first) * row_bytes(weight);
  const auto* codes = reinterpret_cast<const std::uint32_t*>(at);
  return {codes, reinterpret_cast<const float*>(codes + quads(weight.columns) * rows), rows};
}

int micro_panel_count(const PackedMatrix&, int rows) {
  return (rows + kMicroPanelRows - 1) / kMicroPanelRows;
}

std::size_t prepared_bytes(const PackedMatrix& weight, const MicroPanels& micro_panels) {
  return row_bytes(weight) * static_cast<std::size_t>(micro_panels.rows);
}

// Writes the codes of a panel, four to a word, `stride` words apart.
void write_codes(const InputPanel& input, int count, int stride, std::uint32_t* to) {
  alignas(64) std::uint32_t wide[kLanes];
  for (int i = 0; i < count; i += kLanes) {
    store_u32(wide, input.codes(i));
    for (int j = 0; j < kLanes && i + j < count; j += kQuad) {
      const std::uint32_t quad = (wide[j] & 0xffU) | (wide[j + 1] & 0xffU) << 8U |
                                 (wide[j + 2] & 0xffU) << 16U | wide[j + 3] << 24U;
      to[(i + j) / kQuad * stride] = quad ^ kOffsets;
    }
  }
}

void prepare_micro_panel(
    const PackedMatrix& weight,
    const InputRows& x,
    const MicroPanels& micro_panels,
    int micro_panel,
    std::byte* prepared
) {
  const int first = micro_panels.first_row(micro_panel);
  const int rows = micro_panels.first_row(micro_panel + 1) - first;
  std::byte* at = prepared + static_cast<std::size_t>(first) * row_bytes(weight);
  auto* codes = reinterpret_cast<std::uint32_t*>(at);
  auto* scales = reinterpret_cast<float*>(codes + quads(weight.columns) * rows);
  for (int row = 0; row < rows; ++row) {
    for (int panel = 0; panel < panels(weight.columns); ++panel) {
      const int k = panel * kPanel;
      const int count = smaller(kPanel, weight.columns - k);
      const InputPanel input(x, first + row, k, count);
      scales[panel * rows + row] = input.scale();
      write_codes(input, count, rows, codes + k / kQuad * rows + row);
    }
  }
}

// The working memory of one tile: one panel of kBlockStep NR blocks, and all sums.
struct TileMemory {
  PanelCodes panel;
  alignas(64) float sums[kTileBlocks / kBlockStep][kTileRows][kBlockStep][kBlockRows];
};

// Adds the panel's products to the sums of kRows rows.
template <int kRows>
void multiply_rows(
    const PanelCodes& panel,
    int count,
    const std::uint32_t* codes,
    const float* scales,
    float (*sums)[kBlockStep][kBlockRows]
) {
  U32x16 acc[kRows][kBlockStep];
  unroll<kRows>([&](auto row) {
    unroll<kBlockStep>([&](auto b) { acc[row.kValue][b.kValue] = broadcast_u32(0); });
  });
#pragma GCC unroll 4
  for (int i = 0; i < count; ++i) {
    U32x16 w[kBlockStep];
    unroll<kBlockStep>([&](auto b) { w[b.kValue] = load_u32(panel.codes[i][b.kValue]); });
    unroll<kRows>([&](auto row) {
      const U32x16 x = broadcast_u32(codes[row.kValue]);
      unroll<kBlockStep>([&](auto b) {
        acc[row.kValue][b.kValue] = dot_bytes(acc[row.kValue][b.kValue], x, w[b.kValue]);
      });
    });
    codes += kRows;
  }
  unroll<kBlockStep>([&](auto b) {
    const U32x16 extra = load_u32(panel.extras[b.kValue]);
    const F32x16 scale = load(panel.scales[b.kValue]);
    unroll<kRows>([&](auto row) {
      float* y = sums[row.kValue][b.kValue];
      const F32x16 sum = to_float(sub_u32(acc[row.kValue][b.kValue], extra));
      store(y, fma(sum, mul(broadcast(scales[row.kValue]), scale), load(y)));
    });
  });
}

template <int kRows = kMicroPanelRows>
void multiply_micro_panel(
    const PreparedMicroPanel& x,
    const PanelCodes& panel,
    int k,
    int count,
    float (*sums)[kBlockStep][kBlockRows]
) {
  if (x.rows == kRows) {
    const std::uint32_t* codes = x.codes + k / kQuad * kRows;
    multiply_rows<kRows>(panel, quads(count), codes, x.scales + k / kPanel * kRows, sums);
  } else if constexpr (kRows > 1) {
    multiply_micro_panel<kRows - 1>(x, panel, k, count, sums);
  }
}

void store_sums(const PackedMatrix& weight, const LinearTile& tile, const TileMemory& memory) {
  const int first_row = tile.micro_panels.first_row(tile.first_micro_panel);
  const int end_row = tile.micro_panels.first_row(tile.first_micro_panel + tile.micro_panel_count);
  for (int row = first_row; row < end_row; ++row) {
    for (int b = 0; b < tile.block_count; ++b) {
      const F32x16 y = load(memory.sums[b / kBlockStep][row - first_row][b % kBlockStep]);
      store_result(weight, tile, row, tile.first_block + b, y);
    }
  }
}

void multiply(const PackedMatrix& weight, const LinearTile& tile) {
  TileMemory memory;
  const int first_row = tile.micro_panels.first_row(tile.first_micro_panel);
  const int end_micro_panel = tile.first_micro_panel + tile.micro_panel_count;
  const int end = tile.first_block + tile.block_count;
  const int row_count = tile.micro_panels.first_row(end_micro_panel) - first_row;
  for (auto& sums : memory.sums) {
    __builtin_memset(sums, 0, static_cast<std::size_t>(row_count) * sizeof(*sums));
  }
  __builtin_memset(&memory.panel, 0, sizeof(memory.panel));  // For missing blocks of a tile.
  for (int k = 0; k < weight.columns; k += kPanel) {
    const int count = smaller(kPanel, weight.columns - k);
    for (int block = tile.first_block; block < end; block += kBlockStep) {
      find_codes(weight, block, smaller(kBlockStep, end - block), k, memory.panel);
      auto* sums = memory.sums[(block - tile.first_block) / kBlockStep];
      for (int micro_panel = tile.first_micro_panel; micro_panel < end_micro_panel; ++micro_panel) {
        const int row = tile.micro_panels.first_row(micro_panel) - first_row;
        multiply_micro_panel(
            micro_panel_at(weight, tile, micro_panel), memory.panel, k, count, sums + row
        );
      }
    }
  }
  store_sums(weight, tile, memory);
}

}  // namespace
}  // namespace int8

const LinearBodies int8_linear_bodies = {
    int8::micro_panel_count,
    kTileRows,
    kBlockStep,
    {.small_floats = PackedOrder::kInterleavedNr16, .bf16 = kBf16Order},
    true,
    int8::prepared_bytes,
    int8::prepare_micro_panel,
    int8::multiply,
};

}  // namespace saker::kernels::SAKER_ISA
