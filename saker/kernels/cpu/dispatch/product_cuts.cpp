// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/cpu/dispatch/product_cuts.h"

#include "saker/kernels/cpu/runtime/aligned_bytes.h"
#include "saker/kernels/cpu/runtime/thread_pool.h"

#include <algorithm>
#include <cstdint>
#include <iterator>

namespace saker::kernels {
namespace {

// Approximate tiles per thread: enough to compensate for a thread that lost its core for a while.
constexpr int kTilesPerThread = 8;
constexpr std::size_t kLineBytes = 64;

constexpr int divide_up(int a, int b) {
  return (a + b - 1) / b;
}

// As many NR blocks as fit in a tile. Fewer when threads would have too few tiles; `tile_blocks`
// counts tiles of one block.
int blocks_in_tile(std::int64_t tile_blocks, int step) {
  const int wanted = kTilesPerThread * thread_pool().size();
  return static_cast<int>(
      std::clamp<std::int64_t>(tile_blocks / wanted / step * step, step, kTileBlocks)
  );
}

// True if the prepared rows of one serve the other too.
bool share_prepared(const RowProduct& a, const RowProduct& b) {
  return a.make == b.make && a.first_made == b.first_made && a.x.data == b.x.data &&
         a.x.row_stride == b.x.row_stride && a.x.column_stride == b.x.column_stride &&
         a.x.count == b.x.count && a.weight->kind == b.weight->kind &&
         a.weight->order == b.weight->order && a.weight->columns == b.weight->columns &&
         a.weight->group == b.weight->group && a.weight->code_bits == b.weight->code_bits;
}

// The rows of a micro-panel to prepare: rows of x, or rows computed into this thread's memory.
InputRows rows_of(const RowProduct& product, const MicroPanels& micro_panels, int micro_panel) {
  if (product.make == nullptr) {
    return product.x;
  }
  thread_local AlignedBytes made;
  const int first = micro_panels.first_row(micro_panel);
  const int count = micro_panels.first_row(micro_panel + 1) - first;
  const std::ptrdiff_t width = product.weight->columns;
  made.reserve(static_cast<std::size_t>(count * width) * sizeof(float));
  auto* rows = reinterpret_cast<float*>(made.data());
  (*product.make)(product.first_made + first, count, rows);
  // The address that row 0 would have.
  return {rows - first * width, width, 1, product.x.count};
}

// The product that contains micro-panel or tile `index`.
const Cut& cut_of(const std::vector<Cut>& cuts, int Cut::* first, int index) {
  const auto after = std::upper_bound(
      cuts.begin(), cuts.end(), index, [first](int at, const Cut& cut) { return at < cut.*first; }
  );
  return *std::prev(after);
}

}  // namespace

int Cut::tiles() const {
  return row_tiles * divide_up(product.weight->blocks(), block_step);
}

const Cut& Cuts::of_tile(int index) const {
  return cut_of(cuts, &Cut::first_tile, index);
}

const Cut& Cuts::of_micro_panel(int index) const {
  return cut_of(cuts, &Cut::first_micro_panel, index);
}

void Cuts::place(const std::byte* prepared) {
  for (Cut& cut : cuts) {
    cut.whole.prepared = prepared + cut.prepared_at;
  }
}

void cut_products(const LinearBodies& bodies, std::span<const RowProduct> products, Cuts& result) {
  result.cuts.clear();
  result.prepared_bytes = 0;
  result.rows = result.micro_panels = result.tiles = 0;
  std::int64_t tile_blocks = 0;
  for (std::size_t index = 0; index < products.size(); ++index) {
    const RowProduct& product = products[index];
    if (product.x.count == 0) {
      continue;
    }
    const int rows = product.x.count;
    Cut cut;
    cut.product = product;
    cut.index = static_cast<int>(index);
    cut.whole.micro_panels = {rows, bodies.micro_panel_count(*product.weight, rows)};
    cut.whole.bias = product.bias;
    cut.whole.out = product.out;
    const int micro_panels = cut.whole.micro_panels.count;
    cut.row_tiles = divide_up(rows, bodies.tile_rows);
    cut.row_step = divide_up(micro_panels, cut.row_tiles);
    const auto same = std::ranges::find_if(result.cuts, [&](const Cut& earlier) {
      return share_prepared(earlier.product, product);
    });
    cut.first_micro_panel = result.micro_panels;
    if (same != result.cuts.end()) {
      cut.prepared_at = same->prepared_at;
    } else {
      cut.prepared_at = result.prepared_bytes;
      const std::size_t bytes = bodies.prepared_bytes(*product.weight, cut.whole.micro_panels);
      result.prepared_bytes += (bytes + kLineBytes - 1) / kLineBytes * kLineBytes;
      result.rows += rows;
      result.micro_panels += micro_panels;
    }
    tile_blocks += std::int64_t{product.weight->blocks()} * cut.row_tiles;
    result.cuts.push_back(cut);
  }
  for (Cut& cut : result.cuts) {
    const int step = cut.whole.micro_panels.count == 1 ? 4 : bodies.block_step;
    cut.block_step = blocks_in_tile(tile_blocks, step);
    cut.first_tile = result.tiles;
    result.tiles += cut.tiles();
  }
}

void prepare_micro_panel(
    const LinearBodies& bodies, const Cut& cut, int index, std::byte* prepared
) {
  const InputRows x = rows_of(cut.product, cut.whole.micro_panels, index);
  bodies.prepare(*cut.product.weight, x, cut.whole.micro_panels, index, prepared + cut.prepared_at);
}

void prepare_rows(const LinearBodies& bodies, const Cuts& cuts, std::byte* prepared) {
  const auto prepare = [&](int index) {
    const Cut& cut = cuts.of_micro_panel(index);
    prepare_micro_panel(bodies, cut, index - cut.first_micro_panel, prepared);
  };
  if (cuts.rows <= kRowsPreparedAlone) {
    for (int micro_panel = 0; micro_panel < cuts.micro_panels; ++micro_panel) {
      prepare(micro_panel);
    }
    return;
  }
  thread_pool().run(cuts.micro_panels, prepare);
}

void multiply_tile(const LinearBodies& bodies, const Cut& cut, int index) {
  const PackedMatrix& weight = *cut.product.weight;
  const int blocks = weight.blocks();
  const int block_tiles = divide_up(blocks, cut.block_step);
  LinearTile tile = cut.whole;
  tile.first_micro_panel = index / block_tiles * cut.row_step;
  tile.micro_panel_count = std::min(cut.row_step, tile.micro_panels.count - tile.first_micro_panel);
  tile.first_block = index % block_tiles * cut.block_step;
  tile.block_count = std::min(cut.block_step, blocks - tile.first_block);
  bodies.multiply(weight, tile);
}

int tile_of_turn(int turn, int tiles, int parts) {
  const int part = turn % parts;
  const int extra = tiles % parts;
  return part * (tiles / parts) + std::min(part, extra) + turn / parts;
}

}  // namespace saker::kernels
