// SPDX-License-Identifier: Apache-2.0
#include "saker/cache/prefix_cache.h"

#include "saker/cache/kv.h"
#include "saker/cache/window.h"

#include "tests/cache/rows.h"
#include "tests/support/temporary_dir.h"
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace saker::cache {
namespace {

namespace fs = std::filesystem;

using Ids = std::vector<std::int32_t>;

class PrefixFolder : public ::testing::Test {
 protected:
  void SetUp() override { spdlog::set_level(spdlog::level::off); }

  void TearDown() override { spdlog::set_level(spdlog::level::info); }

  saker::testing::TemporaryDir folder_;
};

SequenceCache two_layers(int rows = 0) {
  std::vector<std::unique_ptr<LayerCache>> layers;
  layers.push_back(std::make_unique<KVCache>(test_shape()));
  layers.push_back(std::make_unique<WindowCache>(test_shape(), 100));
  SequenceCache cache(std::move(layers));
  for (int i = 0; rows > 0 && i < 2; ++i) {
    update(cache.layer(i), rows);
  }
  return cache;
}

Ids tokens(int count) {
  Ids ids(static_cast<std::size_t>(count));
  std::iota(ids.begin(), ids.end(), 0);
  return ids;
}

bool has_rows(const SequenceCache& cache, int count) {
  return cache.offset() == count && same_rows(*cache.layer(0).view(), numbers(0, count)) &&
         same_rows(*cache.layer(1).view(), numbers(std::max(0, count - 100), std::min(100, count)));
}

TEST_F(PrefixFolder, RowsComeBackInAnotherProcess) {
  const PrefixCacheOptions options{.folder = folder_.path()};
  {
    PrefixCache prefixes(options);
    PrefixCache::Pin pin;
    prefixes.keep("k", tokens(1000), two_layers(1000), pin);
    auto branch = two_layers();
    Ids other = tokens(700);
    prefixes.restore("k", other, branch, pin);
    EXPECT_TRUE(has_rows(branch, 699));
  }
  PrefixCache prefixes(options);
  PrefixCache::Pin pin;
  auto cache = two_layers();
  EXPECT_EQ(prefixes.restore("other", tokens(1001), cache, pin), 0);
  EXPECT_EQ(prefixes.restore("k", tokens(1001), cache, pin), 1000);
  EXPECT_TRUE(has_rows(cache, 1000));
  EXPECT_EQ(prefixes.stats().loaded_tokens, 1000);
}

TEST_F(PrefixFolder, RowsThatLeaveTheMemoryComeBack) {
  PrefixCache prefixes({.byte_budget = 600'000, .folder = folder_.path()});
  PrefixCache::Pin pin;
  prefixes.keep("a", tokens(1500), two_layers(1500), pin);
  prefixes.keep("b", tokens(1500), two_layers(1500), pin);
  EXPECT_GT(prefixes.stats().evictions, 0);
  for (const char* key : {"a", "b", "a"}) {
    auto cache = two_layers();
    pin = {};
    EXPECT_EQ(prefixes.restore(key, tokens(1501), cache, pin), 1500) << key;
    EXPECT_TRUE(has_rows(cache, 1500));
    EXPECT_LE(prefixes.stats().bytes, 600'000U);
  }
}

TEST_F(PrefixFolder, RowsAreToldAsTheyComeAndGo) {
  std::map<std::string, std::int64_t, std::less<>> held;
  int times_empty = 0;
  bool has_evicted = false;
  const auto hear = [&](std::string_view key, TokenSpan path, std::int64_t rows) {
    if (path.empty()) {
      ++times_empty;
      held.clear();
      return;
    }
    const std::int64_t before = std::exchange(held[std::string(key)], rows);
    has_evicted = has_evicted || rows < before;
  };
  {
    PrefixCache prefixes({.byte_budget = 600'000, .folder = folder_.path(), .on_rows = hear});
    EXPECT_EQ(times_empty, 1);
    for (const char* key : {"a", "b", "a"}) {
      PrefixCache::Pin pin;
      auto cache = two_layers();
      if (prefixes.restore(key, tokens(1501), cache, pin) == 0) {
        prefixes.keep(key, tokens(1500), two_layers(1500), pin);
      }
      for (const char* each : {"a", "b"}) {
        EXPECT_EQ(held[each], prefixes.match(each, tokens(1501))) << key << each;
      }
    }
    EXPECT_TRUE(has_evicted);
  }
  EXPECT_EQ(times_empty, 2);
}

// A byte in the middle of a page is wrong: found when the pages are filled already.
TEST_F(PrefixFolder, DamagedRowsLeaveTheCacheAsItWas) {
  const PrefixCacheOptions options{.folder = folder_.path()};
  PrefixCache::Pin pin;
  for (const int rows : {200, 900}) {  // A file each.
    PrefixCache prefixes(options);
    prefixes.keep("k", tokens(rows), two_layers(rows), pin);
    pin = {};
  }
  std::vector<fs::path> files;
  for (const auto& item : fs::directory_iterator(folder_.path())) {
    files.push_back(item.path());
  }
  ASSERT_EQ(files.size(), 2U);
  const auto& longer = *std::ranges::max_element(files, {}, [](const fs::path& path) {
    return fs::file_size(path);
  });
  std::fstream(longer, std::ios::in | std::ios::out | std::ios::binary)
      .seekp(static_cast<std::streamoff>(fs::file_size(longer) / 2))
      .put('x')
      .put('y');
  PrefixCache prefixes(options);
  auto cache = two_layers();
  EXPECT_EQ(prefixes.restore("k", tokens(901), cache, pin), 200);
  EXPECT_TRUE(has_rows(cache, 200));
  EXPECT_FALSE(fs::exists(longer));
}

// Rows of another model under the same key, which no key should allow.
TEST_F(PrefixFolder, RowsOfAnotherShapeAreLeftOut) {
  const PrefixCacheOptions options{.folder = folder_.path()};
  PrefixCache::Pin pin;
  PrefixCache(options).keep("k", tokens(100), two_layers(100), pin);
  std::vector<std::unique_ptr<LayerCache>> layers;
  layers.push_back(std::make_unique<KVCache>(test_shape()));
  SequenceCache one(std::move(layers));
  PrefixCache prefixes(options);
  EXPECT_EQ(prefixes.restore("k", tokens(101), one, pin), 0);
  EXPECT_TRUE(fs::is_empty(folder_.path()));
}

// As ollama's MLX runner tests prefixes, for a full and a sliding layer (there of 4 rows): sliding layers
// leave all their rows, so that they run no more tokens again than full ones.
TEST(PrefixCache, LeavesOnlyWhatIsNew) {
  const auto make = [] {
    std::vector<std::unique_ptr<LayerCache>> layers;
    layers.push_back(std::make_unique<KVCache>(test_shape()));
    layers.push_back(std::make_unique<WindowCache>(test_shape(), 4));
    return SequenceCache(std::move(layers));
  };
  PrefixCache prefixes({});
  PrefixCache::Pin pin;
  const auto left_to_run = [&](const Ids& prompt) {
    auto cache = make();
    return static_cast<std::int64_t>(prompt.size()) - prefixes.restore("k", prompt, cache, pin);
  };
  const Ids first = {1, 2, 3, 4, 5, 6, 7, 8};
  EXPECT_EQ(left_to_run(first), 8);
  auto cache = make();
  update(cache.layer(0), 9);
  update(cache.layer(1), 9);
  prefixes.keep("k", Ids{1, 2, 3, 4, 5, 6, 7, 8, 20, 21}, cache, pin);  // Row 21 was never run.
  EXPECT_EQ(left_to_run({1, 2, 3, 4, 5, 10, 11, 12}), 3);
  EXPECT_EQ(left_to_run(first), 1);
  EXPECT_EQ(left_to_run({1, 2, 3, 4, 9, 9}), 2);
  EXPECT_EQ(left_to_run({1, 2, 3, 4, 5, 6, 7, 8, 20, 21, 3}), 2);
}

// 16 sequences with a common beginning of 4096 tokens hold it once.
TEST(PrefixCache, CommonRowsLieInMemoryOnce) {
  PrefixCache prefixes({});
  std::vector<SequenceCache> caches;
  std::vector<PrefixCache::Pin> pins(16);
  for (std::size_t i = 0; i < 16; ++i) {
    std::vector<std::unique_ptr<LayerCache>> layers;
    layers.push_back(std::make_unique<KVCache>(test_shape()));
    SequenceCache cache(std::move(layers));
    Ids prompt = tokens(4096);
    prompt.push_back(static_cast<std::int32_t>(10'000 + i));
    EXPECT_EQ(prefixes.restore("k", prompt, cache, pins[i]), i == 0 ? 0 : 4096);
    update(
        cache.layer(0), static_cast<int>(prompt.size() - static_cast<std::size_t>(cache.offset()))
    );
    prefixes.keep("k", prompt, cache, pins[i]);
    caches.push_back(std::move(cache));
  }
  SharedBytes total;
  for (const SequenceCache& cache : caches) {
    cache.snapshot(0)->for_each_block([&](const kernels::KvBlock& block) { total.add(block); });
  }
  const std::size_t page = caches[0].nbytes() / 65;
  EXPECT_EQ(caches[0].nbytes(), 65 * page);
  EXPECT_EQ(total.bytes(), (64 + 16) * page);
  EXPECT_EQ(prefixes.stats().bytes, total.bytes());
}

}  // namespace
}  // namespace saker::cache
