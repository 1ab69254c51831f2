// SPDX-License-Identifier: Apache-2.0
#include "saker/load/export/imatrix_file.h"

#include "saker/base/error.h"
#include "saker/base/mapped_file.h"

#include "tests/support/expect_error.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/temporary_dir.h"
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace saker::load::gguf {
namespace {

using saker::testing::expect_error;
using saker::testing::gguf_number;
using saker::testing::GgufBuilder;

constexpr std::uint32_t kFloat32Type = 0;
constexpr std::uint32_t kFloat16Type = 1;

std::string float_bytes(const std::vector<float>& values) {
  std::string bytes;
  for (const float value : values) {
    bytes += gguf_number(value);
  }
  return bytes;
}

ImportanceFile parse(std::string_view bytes) {
  return parse_imatrix(std::as_bytes(std::span(bytes)), "a.imatrix");
}

void refuse(const std::vector<std::string_view>& words, const std::string& bytes) {
  expect_error(ErrorCode::kCorruptData, words, [&] { parse(bytes); });
}

// A dense weight with two columns, and three experts with one column each. The last got no row.
ImportanceFile small_file() {
  return {
      .entries =
          {{"blk.0.attn_q.weight", {.sums = {4.0F, 0.5F}, .counts = {2.0F}}},
           {"blk.0.ffn_up_exps.weight", {.sums = {3.0F, 8.0F, 0.0F}, .counts = {1.0F, 4.0F, 0.0F}}}
          },
      .datasets = {"wiki.txt"},
      .chunk_count = 1,
      .chunk_size = 512,
  };
}

// The keys of llama.cpp's file.
GgufBuilder builder() {
  GgufBuilder file;
  file.string("general.type", "imatrix");
  file.strings("imatrix.datasets", {"wiki.txt"});
  file.integer("imatrix.chunk_count", 1);
  file.integer("imatrix.chunk_size", 512);
  return file;
}

std::string small_gguf() {
  return builder()
      .tensor("blk.0.attn_q.weight.in_sum2", {2}, kFloat32Type, float_bytes({4.0F, 0.5F}))
      .tensor("blk.0.attn_q.weight.counts", {1}, kFloat32Type, float_bytes({2.0F}))
      .tensor("blk.0.attn_q.weight.in_sum", {2}, kFloat32Type, float_bytes({-1.0F, 1.0F}))
      .tensor(
          "blk.0.ffn_up_exps.weight.in_sum2", {1, 3}, kFloat32Type, float_bytes({3.0F, 8.0F, 0.0F})
      )
      .tensor(
          "blk.0.ffn_up_exps.weight.counts", {1, 3}, kFloat32Type, float_bytes({1.0F, 4.0F, 0.0F})
      )
      .file();
}

struct LegacyEntry {
  std::string name;
  std::int32_t chunks = 0;
  std::vector<float> values;
};

std::string legacy(
    const std::vector<LegacyEntry>& entries,
    std::optional<std::int32_t> chunks,
    const std::string& dataset
) {
  std::string bytes = gguf_number(static_cast<std::int32_t>(entries.size()));
  for (const LegacyEntry& entry : entries) {
    bytes += gguf_number(static_cast<std::int32_t>(entry.name.size())) + entry.name;
    bytes += gguf_number(entry.chunks);
    bytes += gguf_number(static_cast<std::int32_t>(entry.values.size()));
    bytes += float_bytes(entry.values);
  }
  if (chunks) {
    bytes +=
        gguf_number(*chunks) + gguf_number(static_cast<std::int32_t>(dataset.size())) + dataset;
  }
  return bytes;
}

const LegacyEntry kSmallEntry{.name = "blk.0.attn_q.weight", .chunks = 4, .values = {8.0F, 2.0F}};

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(ImatrixFile, ReadsLlamaCppsGguf) {
  EXPECT_EQ(parse(small_gguf()), small_file());
}

TEST(ImatrixFile, ReadsWhatItWrites) {
  const saker::testing::TemporaryDir dir;
  const auto path = dir.path() / "a.gguf";
  write_imatrix(path, small_file());
  EXPECT_EQ(read_imatrix(path), small_file());
  // Readers need the keys, even of a text without a name.
  ImportanceFile bare = small_file();
  bare.datasets.clear();
  bare.chunk_count = 0;
  write_imatrix(path, bare);
  EXPECT_EQ(read_imatrix(path), bare);
  EXPECT_NE(text_of(MappedFile::open(path)->bytes()).find("imatrix.datasets"), std::string::npos);
}

TEST(ImatrixFile, MeansAreByExpert) {
  const ImportanceFile file = small_file();
  EXPECT_EQ(file.entries.at("blk.0.attn_q.weight").means(), (std::vector<float>{2.0F, 0.25F}));
  EXPECT_EQ(
      file.entries.at("blk.0.ffn_up_exps.weight").means(), (std::vector<float>{3.0F, 2.0F, 1.0F})
  );
}

TEST(ImatrixFile, ReadsTheLegacyForm) {
  const ImportanceFile named = parse(legacy({kSmallEntry}, 4, "wiki.txt"));
  EXPECT_EQ(named.datasets, std::vector<std::string>{"wiki.txt"});
  EXPECT_EQ(named.chunk_count, 4U);
  EXPECT_EQ(named.chunk_size, 0U);
  EXPECT_EQ(named.entries.at(kSmallEntry.name).means(), (std::vector<float>{2.0F, 0.5F}));
  const ImportanceFile bare = parse(legacy({kSmallEntry}, std::nullopt, ""));
  EXPECT_EQ(bare.entries, named.entries);
  EXPECT_TRUE(bare.datasets.empty());
  // Without a number of chunks, values are means.
  const ImportanceFile means = parse(legacy({{"a", 0, {8.0F}}}, std::nullopt, ""));
  EXPECT_EQ(means.entries.at("a").means(), std::vector<float>{8.0F});
}

TEST(ImatrixFile, RefusesBrokenGguf) {
  GgufBuilder model;
  model.string("general.type", "model");
  refuse({"a.imatrix", "'model'", "'imatrix'"}, model.file());
  refuse({"missing", "'imatrix'"}, GgufBuilder().file());
  refuse({"no entries"}, builder().file());
  const std::string two = float_bytes({1.0F, 2.0F});
  const std::string three = float_bytes({1.0F, 2.0F, 3.0F});
  refuse({"'a'", ".counts"}, builder().tensor("a.in_sum2", {2}, kFloat32Type, two).file());
  refuse({"'a'", ".in_sum2"}, builder().tensor("a.counts", {2}, kFloat32Type, two).file());
  refuse(
      {"'a'", "3 sums", "2 counts"},
      builder()
          .tensor("a.in_sum2", {3}, kFloat32Type, three)
          .tensor("a.counts", {2}, kFloat32Type, two)
          .file()
  );
  refuse(
      {"'a.counts'", "float32"},
      builder()
          .tensor("a.in_sum2", {2}, kFloat32Type, two)
          .tensor("a.counts", {2}, kFloat16Type, std::string(4, '\0'))
          .file()
  );
  for (const float wrong : {-1.0F, std::numeric_limits<float>::infinity(), std::nanf("")}) {
    const std::string bytes = float_bytes({1.0F, wrong});
    refuse(
        {"'a'", "sums"},
        builder()
            .tensor("a.in_sum2", {2}, kFloat32Type, bytes)
            .tensor("a.counts", {2}, kFloat32Type, two)
            .file()
    );
    refuse(
        {"'a'", "counts"},
        builder()
            .tensor("a.in_sum2", {2}, kFloat32Type, two)
            .tensor("a.counts", {2}, kFloat32Type, bytes)
            .file()
    );
  }
}

TEST(ImatrixFile, RefusesBrokenLegacyFiles) {
  refuse({"0 are left"}, "");
  refuse({"number of entries is 0"}, gguf_number<std::int32_t>(0));
  refuse({"number of entries is -1"}, gguf_number<std::int32_t>(-1));
  refuse({"'a'", "twice"}, legacy({{"a", 1, {1.0F}}, {"a", 1, {1.0F}}}, 1, ""));
  refuse({"number of values", "is 0"}, legacy({{"a", 1, {}}}, 1, ""));
  refuse({"length of a name is 0"}, legacy({{"", 1, {1.0F}}}, 1, ""));
  refuse({"printable name"}, legacy({{"a\n", 1, {1.0F}}}, 1, ""));
  refuse({"sums"}, legacy({{"a", 1, {-1.0F}}}, 1, ""));
  refuse({"number of chunks is -1"}, legacy({kSmallEntry}, -1, ""));
  refuse({"no importance matrix"}, "not a matrix at all");
  // A name and values far longer than the file.
  const std::string one = gguf_number<std::int32_t>(1);
  const std::string huge = gguf_number(std::numeric_limits<std::int32_t>::max());
  refuse({"a name needs 2147483647 bytes"}, one + huge);
  refuse({"values needs 8589934588 bytes"}, one + one + "a" + one + huge);
}

// Each beginning of a file is a whole one or an error.
TEST(ImatrixFile, RefusesFilesThatAreCut) {
  const std::string whole = legacy({kSmallEntry, {"b", 1, {1.0F}}}, 4, "wiki.txt");
  const std::size_t without_chunks = whole.size() - 16;
  for (std::size_t size = 0; size < whole.size(); ++size) {
    if (size == without_chunks || size == without_chunks + 4) {
      EXPECT_EQ(parse(whole.substr(0, size)).entries.size(), 2U);
    } else {
      refuse({"a.imatrix"}, whole.substr(0, size));
    }
  }
  const std::string gguf = small_gguf();
  for (std::size_t size = 0; size < gguf.size(); ++size) {
    refuse({"a.imatrix"}, gguf.substr(0, size));
  }
}

}  // namespace
}  // namespace saker::load::gguf
