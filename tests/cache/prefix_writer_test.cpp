// SPDX-License-Identifier: Apache-2.0
// Prefixes while the store's thread writes pages that caches and the trie go on using. Pages are
// filled without MLX, so that ThreadSanitizer sees every access.
#include "saker/cache/kv.h"
#include "saker/cache/prefix_cache.h"
#include "saker/cache/window.h"
#include "saker/kernels/storage/kv_pages.h"
#include "saker/kernels/storage/kv_storage.h"

#include "tests/support/temporary_dir.h"
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <vector>

namespace saker::cache {
namespace {

using Ids = std::vector<std::int32_t>;

constexpr int kWidth = 4;

const kernels::KvShape& shape() {
  static const kernels::KvShape shape{1, kWidth, kWidth, mx::float32};
  return shape;
}

SequenceCache make_cache() {
  std::vector<std::unique_ptr<LayerCache>> layers;
  layers.push_back(std::make_unique<KVCache>(shape()));
  layers.push_back(std::make_unique<WindowCache>(shape(), 100));
  return SequenceCache(std::move(layers));
}

// What the row of the last of these tokens holds: it stands for all of them.
float number_of(std::span<const std::int32_t> tokens) {
  std::uint32_t hash = 1;
  for (const std::int32_t token : tokens) {
    hash = (hash ^ static_cast<std::uint32_t>(token)) * 0x01000193U;
  }
  return static_cast<float>(hash >> 8U);
}

// Runs tokens [cache.offset(), tokens.size()).
void run(SequenceCache& cache, const Ids& tokens) {
  const std::int64_t first = cache.offset();
  const auto last = static_cast<std::int64_t>(tokens.size());
  cache.begin();
  for (int i = 0; i < cache.layer_count(); ++i) {
    const auto span = cache.layer(i).append(0, static_cast<int>(last - first));
    kernels::KvPages& pages = *span.store->storage().pages();
    for (std::int64_t row = first; row < last; ++row) {
      const float value = number_of(std::span(tokens).first(static_cast<std::size_t>(row) + 1));
      const std::vector<float> values(kWidth, value);
      std::byte* page = pages.find_private(row / kernels::kPageRows);
      ASSERT_NE(page, nullptr);
      const auto slot = static_cast<int>(row % kernels::kPageRows);
      kernels::write_key(pages.layout(), page, 0, slot, values.data());
      kernels::write_value(pages.layout(), page, 0, slot, values.data());
    }
  }
  cache.commit(last - first);
}

// Whether every row that is there is that of its tokens.
bool has_rows(const SequenceCache& cache, const Ids& tokens) {
  const kernels::KvPageLayout layout(kernels::KvPageShape{1, kWidth, kWidth, false});
  bool same = cache.offset() <= static_cast<std::int64_t>(tokens.size());
  cache.snapshot(0)->for_each_block([&](const kernels::KvBlock& block) {
    const auto* page = static_cast<const std::byte*>(block.data);
    const std::int64_t first = block.index * kernels::kPageRows;
    const std::int64_t last = std::min(first + kernels::kPageRows, cache.offset());
    for (std::int64_t row = first; row < last; ++row) {
      float key[kWidth];
      float value[kWidth];
      const auto slot = static_cast<int>(row - first);
      kernels::read_key(layout, page, 0, slot, reinterpret_cast<std::byte*>(key));
      kernels::read_value(layout, page, 0, slot, reinterpret_cast<std::byte*>(value));
      const float expected = number_of(std::span(tokens).first(static_cast<std::size_t>(row) + 1));
      same = same && key[kWidth - 1] == expected && value[0] == expected;
    }
  });
  return same;
}

TEST(PrefixWriter, WritesWhatOthersGoOnUsing) {
  const saker::testing::TemporaryDir folder;
  const PrefixCacheOptions options{
      .byte_budget = 400'000,  // A few sequences: most rows leave for the folder and come back.
      .folder = folder.path(),
      .folder_budget = 6'000'000,
  };
  std::mt19937 random(7);
  const auto draw = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  Ids prompt;
  std::int64_t restored = 0;
  for (int process = 0; process < 3; ++process) {
    PrefixCache prefixes(options);
    for (int round = 0; round < 60; ++round) {
      // Branches off an earlier prompt somewhere, most often inside of a page.
      prompt.resize(static_cast<std::size_t>(draw(0, static_cast<int>(prompt.size()))));
      const auto fresh = static_cast<std::size_t>(draw(1, 400));
      for (std::size_t i = 0; i < fresh && prompt.size() < 1500; ++i) {
        prompt.push_back(draw(0, 2));
      }
      auto cache = make_cache();
      PrefixCache::Pin pin;
      restored += prefixes.restore("k", prompt, cache, pin);
      ASSERT_TRUE(cache.offset() == 0 || has_rows(cache, prompt));
      run(cache, prompt);
      prefixes.keep("k", prompt, cache, pin);
      // The newest page is the trie's and the writer's too: it is copied, not changed.
      prompt.push_back(draw(3, 4));
      run(cache, prompt);
      ASSERT_TRUE(has_rows(cache, prompt));
    }
    EXPECT_GT(prefixes.stats().evictions, 0);
    EXPECT_GT(prefixes.stats().loaded_tokens, 0);
  }
  EXPECT_GT(restored, 1000);
}

}  // namespace
}  // namespace saker::cache
