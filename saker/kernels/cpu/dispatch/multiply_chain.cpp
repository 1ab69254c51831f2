// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/cpu/dispatch/multiply_chain.h"

#include "saker/kernels/cpu/dispatch/product_cuts.h"
#include "saker/kernels/cpu/runtime/aligned_bytes.h"
#include "saker/kernels/cpu/runtime/thread_pool.h"

#include <atomic>
#include <cassert>
#include <cstddef>
#include <memory>
#include <thread>

namespace saker::kernels {
namespace {

// The tiles that each product of the second stage waits for.
class Sources {
 public:
  void reset(const Cuts& first, std::span<const int> feeds, std::size_t count) {
    if (size_ < count) {
      left_ = std::make_unique<std::atomic<int>[]>(count);
      size_ = count;
    }
    for (std::size_t i = 0; i < count; ++i) {
      left_[i].store(0, std::memory_order_relaxed);
    }
    for (const Cut& cut : first.cuts) {
      if (const int fed = feeds[static_cast<std::size_t>(cut.index)]; fed != kFeedsNone) {
        left(fed).fetch_add(cut.tiles(), std::memory_order_relaxed);
      }
    }
  }

  // True for the last tile of a product's sources. Then the caller makes the product's rows.
  bool finish_tile(int product) {
    return left(product).fetch_sub(1, std::memory_order_acq_rel) == 1;
  }

  void set_ready(int product) { left(product).store(kReady, std::memory_order_release); }

  // Other threads compute the sources meanwhile: tiles are claimed in order, and none can fail.
  void wait_for(int product) {
    while (left(product).load(std::memory_order_acquire) != kReady) {
      std::this_thread::yield();
    }
  }

 private:
  static constexpr int kReady = -1;

  std::atomic<int>& left(int product) { return left_[static_cast<std::size_t>(product)]; }

  std::unique_ptr<std::atomic<int>[]> left_;  // Tiles of the sources that are not done.
  std::size_t size_ = 0;
};

// The stream's thread keeps this, so that passes do not fault in fresh pages each time.
struct Stage {
  Cuts cuts;
  AlignedBytes prepared;

  void cut(const LinearBodies& bodies, std::span<const RowProduct> products) {
    cut_products(bodies, products, cuts);
    prepared.reserve(cuts.prepared_bytes);
    cuts.place(prepared.data());
  }

  const Cut& multiply(const LinearBodies& bodies, int index) const {
    const Cut& cut = cuts.of_tile(index);
    multiply_tile(bodies, cut, index - cut.first_tile);
    return cut;
  }

  void prepare(const LinearBodies& bodies, const Cut& cut) {
    for (int micro_panel = 0; micro_panel < cut.whole.micro_panels.count; ++micro_panel) {
      prepare_micro_panel(bodies, cut, micro_panel, prepared.data());
    }
  }
};

}  // namespace

void multiply_chain(const LinearBodies& bodies, const ProductChain& chain) {
  thread_local Stage kept[2];
  thread_local Sources kept_sources;
  Stage& first = kept[0];
  Stage& second = kept[1];
  Sources& sources = kept_sources;
  first.cut(bodies, chain.first);
  second.cut(bodies, chain.second);
  assert(second.cuts.cuts.size() == chain.second.size());
  sources.reset(first.cuts, chain.feeds, chain.second.size());
  prepare_rows(bodies, first.cuts, first.prepared.data());
  const int parts = thread_pool().size();
  const int first_tiles = first.cuts.tiles;
  thread_pool().run(first_tiles + second.cuts.tiles, [&](int turn) {
    if (turn < first_tiles) {
      const Cut& cut = first.multiply(bodies, tile_of_turn(turn, first_tiles, parts));
      const int fed = chain.feeds[static_cast<std::size_t>(cut.index)];
      if (fed != kFeedsNone && sources.finish_tile(fed)) {
        chain.between(fed);
        second.prepare(bodies, second.cuts.cuts[static_cast<std::size_t>(fed)]);
        sources.set_ready(fed);
      }
      return;
    }
    const int index = tile_of_turn(turn - first_tiles, second.cuts.tiles, parts);
    sources.wait_for(second.cuts.of_tile(index).index);
    second.multiply(bodies, index);
  });
}

}  // namespace saker::kernels
