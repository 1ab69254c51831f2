// SPDX-License-Identifier: Apache-2.0
#include "saker/cache/prefix_store.h"

#include "saker/base/checksum.h"
#include "saker/base/error.h"

#include "tests/support/temporary_dir.h"
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <sstream>
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

// The payload of an entry; none where it is damaged.
std::optional<std::string> read_text(PrefixStore& store, const PrefixStore::Entry& entry) {
  std::string text;
  const bool whole = store.read(entry, [&](CheckedReader& payload) {
    text.resize(payload.left());
    payload.read(std::as_writable_bytes(std::span(text)));
  });
  return whole ? std::optional(text) : std::nullopt;
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
  EXPECT_EQ(read_text(store, *entry), rows);
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
    const bool used = entry != nullptr && read_text(store, *entry).has_value();
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

TEST_F(Store, WhatAnotherProcessTookIsNoWarning) {
  std::ostringstream said;
  const auto before = spdlog::default_logger();
  spdlog::set_default_logger(std::make_shared<spdlog::logger>(
      "store", std::make_shared<spdlog::sinks::ostream_sink_mt>(said)
  ));
  {
    PrefixStore store = open();
    const Ids path{1, 2, 3};
    store.write("key", path, 0, payload_of("rows"));
    const PrefixStore::Entry* entry = store.find("key", path, 0);
    ASSERT_NE(entry, nullptr);
    ASSERT_TRUE(entry->written.get());
    fs::remove(entry->file);
    EXPECT_EQ(read_text(store, *entry), std::nullopt);
    EXPECT_EQ(store.find("key", path, 0), nullptr);
  }
  spdlog::set_default_logger(before);
  EXPECT_EQ(said.str(), "");
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

TEST_F(Store, WhatAWriterLeftBehindGoesAfterAWhile) {
  const fs::path fresh = folder_.path() / ".x.saker-prefix.1-1.tmp";
  const fs::path old = folder_.path() / ".y.saker-prefix.1-2.tmp";
  const fs::path other = folder_.path() / ".y.txt.1-2.tmp";
  for (const fs::path& path : {fresh, old, other}) {
    std::ofstream(path) << "half";
  }
  for (const fs::path& path : {old, other}) {
    fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(2));
  }
  open();
  EXPECT_TRUE(fs::exists(fresh));
  EXPECT_FALSE(fs::exists(old));
  EXPECT_TRUE(fs::exists(other));
}

TEST_F(Store, LongestUnusedGoesFirst) {
  const std::string rows(1000, 'x');
  PrefixStore store = open(3300);
  for (const int token : {1, 2, 3}) {
    store.write("k", Ids{token}, 0, payload_of(rows));
  }
  const Ids first = {1};
  EXPECT_TRUE(read_text(store, *store.find("k", first, 0)).has_value());
  store.write("k", Ids{4}, 0, payload_of(rows));
  EXPECT_EQ(store.size(), 3U);
  EXPECT_LE(store.bytes(), 3300U);
  EXPECT_NE(store.find("k", first, 0), nullptr);
  const Ids last = {4};
  EXPECT_TRUE(read_text(store, *store.find("k", last, 0)).has_value());  // All files are written.
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
    EXPECT_EQ(read_text(store, *store.find("k", Ids{token}, 0)), rows_of(token));
  }
  EXPECT_EQ(store.size(), 120U);
}

TEST_F(Store, FilesThatCannotBeWrittenAreLeftOut) {
  PrefixStore store = open();
  fs::remove(folder_.path());
  store.write("k", Ids{1, 2}, 0, payload_of("rows"));
  const Ids tokens = {1, 2};
  EXPECT_FALSE(read_text(store, *store.find("k", tokens, 0)).has_value());
  EXPECT_EQ(store.size(), 0U);
  EXPECT_EQ(store.bytes(), 0U);
  fs::create_directory(folder_.path());
  store.write("k", Ids{1, 2}, 0, payload_of("rows"));
  EXPECT_EQ(read_text(store, *store.find("k", tokens, 0)), "rows");
}

}  // namespace
}  // namespace saker::cache
