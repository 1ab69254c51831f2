// SPDX-License-Identifier: Apache-2.0
// Products of int8 on AMX's tiles; weights in the order kInTiles.
#include "saker/kernels/amx/results.h"
#include "saker/kernels/int8/tile_weights.h"

namespace saker::kernels::SAKER_ISA {

extern const LinearBodies int8_linear_bodies;

namespace int8 {
namespace {

// Whole panels of steps: what is behind the last column is zero.
int steps(const PackedMatrix& weight) {
  return panels(weight.columns) * kPanelSteps;
}

// A sliver's codes [steps][16 fours of columns][width], then scales [panels][width].
struct PreparedSliver {
  const std::byte* codes;
  const float* scales;
  int width;

  const std::byte* step(int index) const { return codes + index * kTileHeight * line_bytes(); }

  std::ptrdiff_t line_bytes() const { return width * std::ptrdiff_t{sizeof(std::uint32_t)}; }
};

std::size_t sliver_bytes(const PackedMatrix& weight, const Slivers& slivers) {
  const int lines = steps(weight) * kTileHeight + panels(weight.columns);
  return static_cast<std::size_t>(lines) * static_cast<std::size_t>(line_bytes(slivers));
}

PreparedSliver sliver_at(
    const PackedMatrix& weight, const Slivers& slivers, const std::byte* prepared, int sliver
) {
  const std::byte* codes = prepared + sliver * sliver_bytes(weight, slivers);
  const std::byte* scales = codes + steps(weight) * kTileHeight * line_bytes(slivers);
  return {codes, reinterpret_cast<const float*>(scales), slivers.first_row(1)};
}

int sliver_rows(const PackedMatrix&) {
  return kTileHeight;
}

std::size_t prepared_bytes(const PackedMatrix& weight, const Slivers& slivers) {
  return sliver_bytes(weight, slivers) * static_cast<std::size_t>(slivers.count);
}

// The codes of sixteen rows' panel: row after row, kPanel bytes each.
using RowCodes = std::byte[kTileHeight][kPanel];

// Fours of the 64 columns of a step, by row -> lines of a four of all rows.
void store_step(const RowCodes& rows, int step, int width, std::uint32_t* to) {
  U32x16 lines[kTileHeight];
  for (int row = 0; row < kTileHeight; ++row) {
    const std::byte* from = rows[row] + step * kStepCodes;
    lines[row] = load_u32(reinterpret_cast<const std::uint32_t*>(from));
  }
  transpose(lines);
  for (const U32x16& line : lines) {
    store_part(reinterpret_cast<float*>(to), as_float(line), width);
    to += width;
  }
}

void prepare_sliver(
    const PackedMatrix& weight,
    const InputRows& x,
    const Slivers& slivers,
    int sliver,
    std::byte* prepared
) {
  const PreparedSliver to = sliver_at(weight, slivers, prepared, sliver);
  const int first = slivers.first_row(sliver);
  const int rows = slivers.first_row(sliver + 1) - first;
  auto* codes = reinterpret_cast<std::uint32_t*>(const_cast<std::byte*>(to.codes));
  auto* scales = const_cast<float*>(to.scales);
  alignas(64) RowCodes row_codes = {};
  for (int panel = 0; panel < panels(weight.columns); ++panel) {
    const int k = panel * kPanel;
    for (int row = 0; row < to.width; ++row) {
      if (row >= rows) {
        *scales++ = 0;
        continue;
      }
      const InputPanel input(x, first + row, k, smaller(kPanel, weight.columns - k));
      *scales++ = input.scale();
      for (int i = 0; i < kPanel; i += kLanes) {
        store_low_bytes(row_codes[row] + i, input.codes(i));
      }
    }
    for (int step = 0; step < kPanelSteps; ++step) {
      store_step(row_codes, step, to.width, codes);
      codes += kTileHeight * to.width;
    }
  }
}

// The working memory of a thread.
struct PanelMemory {
  BlockCodes blocks[kTileBlocks];
  alignas(64) SumTile sums[kTileSlivers][kTileBlocks];
};

// y of one block and sliver += a panel's sums, which are in the tile kSum.
template <int kSum>
void add_sums(const float* weight_scales, const float* input_scales, int width, float* sums) {
  alignas(64) std::uint32_t products[kTileHeight * kTileHeight];
  tile_store<kSum>(products, width * std::ptrdiff_t{sizeof(std::uint32_t)});
  const F32x16 scales = load_part(input_scales, width);
  for (int line = 0; line < kTileHeight; ++line) {
    const int at = line * width;
    const U32x16 sum = load_u32(products + at);  // Reads into the next line at most.
    const F32x16 scale = mul(broadcast(weight_scales[line]), scales);
    store_part(sums + at, fma(to_float(sum), scale, load_part(sums + at, width)), width);
  }
}

// Two slivers (or the last one) by two blocks (or the last one).
template <int kSlivers, int kBlocks>
void multiply_unit(
    const PreparedSliver* x, int panel, int count, int sliver, int block, PanelMemory& memory
) {
  unroll<4>([](auto sum) { tile_clear<sum.kValue>(); });
  const std::ptrdiff_t stride = x[0].line_bytes();
  for (int step = 0; step < count; ++step) {
    unroll<kBlocks>([&](auto b) {
      tile_load<kLeft + b.kValue>(memory.blocks[block + b.kValue].steps[step], kTileStride);
    });
    unroll<kSlivers>([&](auto s) {
      tile_load<kRight + s.kValue>(x[s.kValue].step(panel * kPanelSteps + step), stride);
      unroll<kBlocks>([&](auto b) {
        tile_add_byte_products<2 * s.kValue + b.kValue, kLeft + b.kValue, kRight + s.kValue>();
      });
    });
  }
  unroll<kSlivers>([&](auto s) {
    const float* scales = x[s.kValue].scales + panel * x[s.kValue].width;
    unroll<kBlocks>([&](auto b) {
      add_sums<2 * s.kValue + b.kValue>(
          memory.blocks[block + b.kValue].scales,
          scales,
          x[s.kValue].width,
          memory.sums[sliver + s.kValue][block + b.kValue]
      );
    });
  });
}

void multiply_panel(
    const PackedMatrix& weight, const LinearTile& tile, int panel, int count, PanelMemory& memory
) {
  for (int s = 0; s < tile.sliver_count; s += 2) {
    const int sliver = tile.first_sliver + s;
    const bool two = s + 1 < tile.sliver_count;
    const PreparedSliver x[2] = {
        sliver_at(weight, tile.slivers, tile.prepared, sliver),
        sliver_at(weight, tile.slivers, tile.prepared, two ? sliver + 1 : sliver),
    };
    for (int b = 0; b < tile.block_count; b += 2) {
      if (b + 1 < tile.block_count) {
        two ? multiply_unit<2, 2>(x, panel, count, s, b, memory)
            : multiply_unit<1, 2>(x, panel, count, s, b, memory);
      } else {
        two ? multiply_unit<2, 1>(x, panel, count, s, b, memory)
            : multiply_unit<1, 1>(x, panel, count, s, b, memory);
      }
    }
  }
}

void multiply(const PackedMatrix& weight, const LinearTile& tile) {
  alignas(64) thread_local PanelMemory memory;
  const int width = tile.slivers.first_row(1);
  __builtin_memset(memory.sums, 0, sizeof(memory.sums[0]) * tile.sliver_count);
  {
    const Tiles registers(kTileHeight, width);
    for (int panel = 0; panel < panels(weight.columns); ++panel) {
      int count = 0;
      for (int b = 0; b < tile.block_count; ++b) {
        count = find_codes(weight, tile.first_block + b, panel * kPanel, memory.blocks[b]);
      }
      multiply_panel(weight, tile, panel, count, memory);
    }
  }
  for (int s = 0; s < tile.sliver_count; ++s) {
    const int first = tile.slivers.first_row(tile.first_sliver + s);
    const int end = tile.slivers.first_row(tile.first_sliver + s + 1);
    const ResultPart part = {first, end, tile.first_block, tile.block_count};
    store_rows(weight, tile, part, memory.sums[s]);
  }
}

}  // namespace
}  // namespace int8

const LinearBodies int8_linear_bodies = {
    int8::sliver_rows,
    kBlockStep,
    PackedOrder::kInTiles,
    int8::prepared_bytes,
    int8::prepare_sliver,
    int8::multiply,
};

}  // namespace saker::kernels::SAKER_ISA
