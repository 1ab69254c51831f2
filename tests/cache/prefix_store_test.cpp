// SPDX-License-Identifier: Apache-2.0
#include "saker/cache/prefix_store.h"

#include "saker/base/checksum.h"
#include "saker/base/error.h"
#include "saker/cache/kv.h"
#include "saker/cache/prefix_cache.h"
#include "saker/cache/rotating.h"

#include "tests/cache/rows.h"
#include "tests/support/temporary_dir.h"
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace saker::cache {
namespace {

namespace fs = std::filesystem;

using Ids = std::vector<std::int32_t>;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

PrefixStore::Payload payload_of(std::string text, std::size_t cut = 0) {
  const auto owner = std::make_shared<const std::string>(std::move(text));
  const auto bytes = bytes_of(*owner);
  return {{bytes.first(cut), bytes.subspan(cut)}, owner};
}

std::string text_of(const PrefixStore::Payload& payload) {
  const auto bytes = payload.parts.front();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// From the specification's implementation.
TEST(Checksum, IsXxh64) {
  EXPECT_EQ(checksum(bytes_of("")), 0xef46db3751d8e999U);
  EXPECT_EQ(checksum(bytes_of("a")), 0xd24ec4f1a98c6e5bU);
  EXPECT_EQ(checksum(bytes_of("abc")), 0x44bc2cf5ad770999U);
  std::string text;
  for (int i = 0; i < 200; ++i) {
    text.push_back(static_cast<char>(i * 7));
    Checksum parts;
    parts.add(bytes_of(text).first(text.size() / 3));
    parts.add(bytes_of(text).subspan(text.size() / 3));
    EXPECT_EQ(parts.value(), checksum(bytes_of(text)));
  }
}

// Of a whole header; 1 of less.
int entry_version(const std::string& content) {
  std::int32_t version = 1;
  if (content.size() >= 56 && content.starts_with("SAKERPFX")) {
    std::memcpy(&version, content.data() + 8, sizeof(version));
  }
  return version;
}

class Store : public ::testing::Test {
 protected:
  void SetUp() override { spdlog::set_level(spdlog::level::off); }

  void TearDown() override { spdlog::set_level(spdlog::level::info); }

  PrefixStore open(std::uintmax_t budget = 1 << 20) const { return {folder_.path(), budget}; }

  fs::path file() const {
    std::vector<fs::path> files;
    for (const auto& item : fs::directory_iterator(folder_.path())) {
      files.push_back(item.path());
    }
    EXPECT_EQ(files.size(), 1U);
    return files.front();
  }

  saker::testing::TemporaryDir folder_;
};

TEST_F(Store, OutlivesItsObject) {
  const std::string rows = "rows of three tokens";
  open().write("k", Ids{1, 2, 3}, 0, payload_of(rows, 4));
  PrefixStore store = open();
  EXPECT_TRUE(store.has("k", Ids{1, 2}, 0));
  EXPECT_FALSE(store.has("other", Ids{1, 2}, 0));
  EXPECT_FALSE(store.has("k", Ids{1, 3}, 0));
  EXPECT_EQ(store.find("other", Ids{1, 2, 3}, 0), nullptr);
  EXPECT_EQ(store.find("k", Ids{1, 2, 3}, 3), nullptr);
  const auto* entry = store.find("k", Ids{1, 2, 9}, 1);
  ASSERT_NE(entry, nullptr);
  EXPECT_EQ(entry->path, (Ids{1, 2, 3}));
  EXPECT_EQ(text_of(*store.read(*entry)), rows);
}

TEST_F(Store, FindsTheLongestThatStartsEarlyEnough) {
  PrefixStore store = open();
  store.write("k", Ids{1, 2}, 0, payload_of("a"));
  store.write("k", Ids{1, 2, 3, 4}, 2, payload_of("b"));
  store.write("k", Ids{1, 2, 3, 4, 5}, 4, payload_of("c"));
  const Ids prompt = {1, 2, 3, 4, 5, 6};
  EXPECT_EQ(store.find("k", prompt, 0)->path.size(), 2U);
  EXPECT_EQ(store.find("k", prompt, 2)->path.size(), 4U);
  EXPECT_EQ(store.find("k", prompt, 3)->path.size(), 4U);
  EXPECT_EQ(store.find("k", prompt, 4)->path.size(), 5U);
}

// Cut at every length and changed at every byte: noticed by the index or when it is read.
TEST_F(Store, DamagedFilesAreLeftOut) {
  open().write("key", Ids{1, 2, 3}, 0, payload_of("some rows"));
  const fs::path path = file();
  std::ifstream input(path, std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(input), {}};
  const auto is_used = [&](const std::string& content) {
    std::ofstream(path, std::ios::binary) << content;
    PrefixStore store = open();
    const auto* entry = store.find("key", Ids{1, 2, 3}, 0);
    const bool used = entry != nullptr && store.read(*entry).has_value();
    // A file of another version may be good for another program.
    EXPECT_EQ(fs::exists(path), used || entry_version(content) != 1);
    EXPECT_EQ(store.size(), used ? 1U : 0U);
    EXPECT_EQ(store.bytes() > 0, used);
    return used;
  };
  EXPECT_TRUE(is_used(whole));
  for (std::size_t i = 0; i < whole.size(); ++i) {
    EXPECT_FALSE(is_used(whole.substr(0, i))) << i;
    std::string changed = whole;
    changed[i] = static_cast<char>(changed[i] ^ 0x20);
    EXPECT_FALSE(is_used(changed)) << i;
  }
  EXPECT_FALSE(is_used(whole + "x"));
}

TEST_F(Store, OtherFilesAreNotTouched) {
  std::ofstream(folder_.path() / "notes.txt") << "mine";
  std::ofstream(folder_.path() / ".x.saker-prefix.1-1.tmp") << "half";
  fs::create_directory(folder_.path() / "a.saker-prefix");
  EXPECT_EQ(open().size(), 0U);
  EXPECT_TRUE(fs::exists(folder_.path() / "notes.txt"));
  std::ofstream(folder_.path() / "file") << "x";
  EXPECT_THROW(PrefixStore(folder_.path() / "file", 1), Error);
}

TEST_F(Store, LongestUnusedGoesFirst) {
  const std::string rows(1000, 'x');
  PrefixStore store = open(3300);
  for (const int token : {1, 2, 3}) {
    store.write("k", Ids{token}, 0, payload_of(rows));
  }
  const Ids first = {1};
  EXPECT_TRUE(store.read(*store.find("k", first, 0)).has_value());
  store.write("k", Ids{4}, 0, payload_of(rows));
  EXPECT_EQ(store.size(), 3U);
  EXPECT_LE(store.bytes(), 3300U);
  EXPECT_NE(store.find("k", first, 0), nullptr);
  const Ids last = {4};
  EXPECT_TRUE(store.read(*store.find("k", last, 0)).has_value());  // All files are written.
  EXPECT_EQ(open(1500).size(), 1U);
  store.write("k", Ids{5}, 0, payload_of(std::string(5000, 'y')));
  EXPECT_FALSE(store.has("k", Ids{5}, 0));
}

TEST_F(Store, EntriesAreThereBeforeTheirFiles) {
  PrefixStore store = open(std::uintmax_t{1} << 30);
  const auto rows_of = [](int token) {
    return std::string(3 << 20, static_cast<char>('a' + token % 26));
  };
  for (int token = 0; token < 120; ++token) {  // More than may wait.
    store.write("k", Ids{token}, 0, payload_of(rows_of(token)));
    EXPECT_TRUE(store.has("k", Ids{token}, 0));
  }
  for (const int token : {119, 3, 60}) {
    EXPECT_EQ(text_of(*store.read(*store.find("k", Ids{token}, 0))), rows_of(token));
  }
  EXPECT_EQ(store.size(), 120U);
}

TEST_F(Store, FilesThatCannotBeWrittenAreLeftOut) {
  PrefixStore store = open();
  fs::remove(folder_.path());
  store.write("k", Ids{1, 2}, 0, payload_of("rows"));
  const Ids tokens = {1, 2};
  EXPECT_FALSE(store.read(*store.find("k", tokens, 0)).has_value());
  EXPECT_EQ(store.size(), 0U);
  EXPECT_EQ(store.bytes(), 0U);
  fs::create_directory(folder_.path());
  store.write("k", Ids{1, 2}, 0, payload_of("rows"));
  EXPECT_EQ(text_of(*store.read(*store.find("k", tokens, 0))), "rows");
}

SequenceCache two_layers(int rows = 0) {
  std::vector<std::unique_ptr<LayerCache>> layers;
  layers.push_back(std::make_unique<KVCache>(test_shape()));
  layers.push_back(std::make_unique<RotatingKVCache>(test_shape(), 100));
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

TEST_F(Store, RowsComeBackInAnotherProcess) {
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

TEST_F(Store, RowsThatLeaveTheMemoryComeBack) {
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

// Rows of another model under the same key, which no key should allow.
TEST_F(Store, RowsOfAnotherShapeAreLeftOut) {
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
