// SPDX-License-Identifier: Apache-2.0
#include "saker/load/prompt_cache.h"

#include "saker/base/error.h"
#include "saker/load/files/host_rows.h"

#include "tests/support/expect_error.h"
#include "tests/support/safetensors_writer.h"
#include "tests/support/temporary_dir.h"
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <numeric>
#include <string>
#include <vector>

namespace saker::load {
namespace {

using testing::expect_error;
using testing::f32_tensor;
using testing::raw_bytes;
using testing::RawTensor;
using testing::TemporaryDir;
using Metadata = std::map<std::string, std::string>;
using Texts = std::vector<std::string>;

std::filesystem::path golden(const std::string& name) {
  return std::filesystem::path(SAKER_SOURCE_DIR) / "tests/golden/caches" / name;
}

std::string bytes_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The first element of each row of the first head and batch row.
std::vector<float> row_numbers(const Tensor& tensor) {
  const std::vector<float> all = to_floats(tensor);
  std::vector<float> numbers;
  numbers.reserve(static_cast<std::size_t>(tensor.shape[2]));
  for (std::int64_t i = 0; i < tensor.shape[2]; ++i) {
    numbers.push_back(all[static_cast<std::size_t>(i * tensor.shape[3])]);
  }
  return numbers;
}

std::vector<float> counting(int first, int count) {
  std::vector<float> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), static_cast<float>(first));
  return numbers;
}

// A file of the classic format, or of whichever these metadata say, and what is read from it.
PromptCache read(const std::vector<RawTensor>& tensors, const Metadata& metadata) {
  const TemporaryDir dir;
  return read_prompt_cache(dir.write("cache", testing::safetensors_file(tensors, metadata)));
}

RawTensor rows(std::string name, int count, int width = 1) {
  return f32_tensor(std::move(name), {1, 1, count, width}, counting(0, count * width));
}

RawTensor integer(std::string name, std::int32_t value) {
  return {std::move(name), "I32", {}, raw_bytes(std::vector<std::int32_t>{value})};
}

TEST(PromptCache, ReadsEveryClassOfMlxLm) {
  const PromptCache cache = read_prompt_cache(golden("kinds.safetensors"));
  EXPECT_EQ(cache.format, CacheFormat::kCurrent);
  EXPECT_EQ(cache.metadata, (FileMetadata{{"note", "every class"}, {"a.b", "dotted"}}));
  ASSERT_EQ(cache.layers.size(), 12U);
  const auto& layers = cache.layers;

  EXPECT_EQ(layers[0].kind, "KVCache");
  EXPECT_EQ(row_numbers(layers[0].state[0]), counting(0, 5));
  // R1 of the cache cases: a ring that has wrapped.
  EXPECT_EQ(layers[1].meta, (Texts{"4", "8", "11", "7"}));
  EXPECT_EQ(row_numbers(layers[1].state[0]), (std::vector<float>{0, 1, 2, 3, 8, 9, 10, 7}));
  // R4: a ring of more rows than max_size.
  EXPECT_EQ(layers[2].meta, (Texts{"4", "8", "11", "9"}));
  EXPECT_EQ(row_numbers(layers[2].state[0]), (std::vector<float>{0, 1, 2, 3, 6, 7, 8, 9, 10}));
  EXPECT_EQ(layers[3].kind, "KVCache");  // ConcatenateKVCache
  EXPECT_EQ(layers[4].meta, (Texts{"4", "2"}));
  EXPECT_EQ(row_numbers(layers[4].state[0]), counting(2, 4));
  EXPECT_EQ(layers[5].meta, (Texts{"3", "32", "8"}));
  EXPECT_EQ(layers[5].state.size(), 6U);
  EXPECT_EQ(layers[5].state[0].shape, (std::vector<std::int64_t>{1, 2, 3, 8}));
  EXPECT_EQ(layers[6].meta, (Texts{"3", "1", "1,0", ""}));
  EXPECT_EQ(layers[7].state.size(), 4U);
  EXPECT_EQ(to_integers(layers[7].state[2]), (std::vector<std::int64_t>{3, 1, 4}));
  EXPECT_EQ(layers[8].meta, (Texts{"2", "4", "1", "true"}));
  // L1, one list deeper.
  EXPECT_EQ(
      layers[9].meta,
      (Texts{
          "2",
          "KVCache",
          "2",
          "0",
          "CacheList",
          "2",
          "11",
          "2",
          "RotatingKVCache",
          "2",
          "4",
          "4",
          "8",
          "5",
          "5",
          "KVCache",
          "0",
          "0"
      })
  );
  EXPECT_TRUE(layers[10].state.empty());
  EXPECT_EQ(layers[11].meta, (Texts{"0", "16", "0", "0"}));
}

TEST(PromptCache, DialectsHoldTheSameRows) {
  for (const std::string model : {"llama", "deepseek_v3", "gemma3", "gemma4_small"}) {
    const auto current = read_prompt_cache(golden(model + ".safetensors"));
    for (const std::string dialect : {".classic", ".swift"}) {
      const auto classic = read_prompt_cache(golden(model + dialect));
      EXPECT_EQ(classic.format, CacheFormat::kClassic);
      ASSERT_EQ(classic.layers.size(), current.layers.size());
      for (std::size_t i = 0; i < current.layers.size(); ++i) {
        EXPECT_EQ(classic.layers[i].kind, current.layers[i].kind);
        EXPECT_EQ(classic.layers[i].meta, current.layers[i].meta);
        ASSERT_EQ(classic.layers[i].state.size(), 2U);
        EXPECT_EQ(to_floats(classic.layers[i].state[0]), to_floats(current.layers[i].state[0]));
        EXPECT_EQ(to_floats(classic.layers[i].state[1]), to_floats(current.layers[i].state[1]));
      }
    }
  }
}

TEST(PromptCache, WritingAndReadingChangesNothing) {
  const TemporaryDir dir;
  auto cache = read_prompt_cache(golden("kinds.safetensors"));
  // Our own class has no golden of mlx-lm.
  const std::string ring = "QuantizedRotatingKVCache";
  cache.layers.push_back({ring, cache.layers[5].state, {"2", "3", "9", "2", "32", "8"}});
  cache.layers.push_back({ring, {}, {"0", "8", "0", "0", "64", "4"}});
  write_prompt_cache(dir.path() / "a", cache);
  const auto again = read_prompt_cache(dir.path() / "a");
  EXPECT_EQ(again.metadata, cache.metadata);
  ASSERT_EQ(again.layers.size(), cache.layers.size());
  for (std::size_t i = 0; i < cache.layers.size(); ++i) {
    EXPECT_EQ(again.layers[i].kind, cache.layers[i].kind);
    EXPECT_EQ(again.layers[i].meta, cache.layers[i].meta);
    ASSERT_EQ(again.layers[i].state.size(), cache.layers[i].state.size());
  }
  write_prompt_cache(dir.path() / "b", again);
  EXPECT_EQ(bytes_of(dir.path() / "a"), bytes_of(dir.path() / "b"));
}

// mlxrs and mlx-swift have quantized rows without biases, flat or nested.
TEST(PromptCache, QuantizedRowsWithoutBiasesAreReadAndWritten) {
  const std::string words(64, 'x');
  const RawTensor keys{"0.0", "U32", {1, 1, 2, 8}, words};
  const RawTensor values{"0.2", "U32", {1, 1, 2, 8}, words};
  const RawTensor nested_keys{"0.0.0", "U32", {1, 1, 2, 8}, words};
  const RawTensor nested_values{"0.1.0", "U32", {1, 1, 2, 8}, words};
  const RawTensor byte_keys{"0.1", "U8", {1, 1, 2, 1}, "\x7f\x7f"};
  const RawTensor byte_values{"0.3", "U8", {1, 1, 2, 1}, "\x7f\x7f"};
  const Metadata meta{
      {"0.0.0", "256"},
      {"0.0.1", "2"},
      {"0.0.2", "32"},
      {"0.0.3", "8"},
      {"2.0", "QuantizedKVCache"},
  };
  for (const auto& tensors : {
           std::vector<RawTensor>{keys, rows("0.1", 2), values, rows("0.3", 2)},
           std::vector<RawTensor>{nested_keys, rows("0.0.1", 2), nested_values, rows("0.1.1", 2)},
           std::vector<RawTensor>{keys, byte_keys, values, byte_values},
       }) {
    const auto cache = read(tensors, meta);
    ASSERT_EQ(cache.layers.at(0).state.size(), 4U);
    EXPECT_EQ(cache.layers[0].meta, (Texts{"2", "32", "8"}));
    const TemporaryDir dir;
    write_prompt_cache(dir.path() / "again", cache);
    const auto again = read_prompt_cache(dir.path() / "again");
    EXPECT_EQ(again.format, CacheFormat::kCurrent);
    ASSERT_EQ(again.layers.at(0).state.size(), 4U);
    EXPECT_EQ(again.layers[0].meta, cache.layers[0].meta);
    for (std::size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(again.layers[0].state[i].dtype, cache.layers[0].state[i].dtype);
      EXPECT_EQ(again.layers[0].state[i].shape, cache.layers[0].state[i].shape);
    }
  }
  expect_error(ErrorCode::kCorruptData, {"U8"}, [&] {
    read({keys, byte_keys, values, rows("0.3", 2)}, meta);
  });
}

TEST(PromptCache, ReadsTheDialectOfMlxrs) {
  // Flat quantized parts, slots with their numbers, and framed lists.
  const RawTensor words{"1.0", "U32", {1, 1, 2, 8}, std::string(64, 'x')};
  const RawTensor value_words{"1.3", "U32", {1, 1, 2, 8}, std::string(64, 'y')};
  const auto cache = read(
      {rows("0.0", 3),
       rows("0.1", 3),
       words,
       rows("1.1", 2),
       rows("1.2", 2),
       value_words,
       rows("1.4", 2),
       rows("1.5", 2),
       f32_tensor("2.0", {1, 2}, {1, 2}),
       rows("3.0", 3),
       rows("3.1", 3),
       rows("3.2", 5),
       rows("3.3", 5)},
      {{"0.0", ""},
       {"0.1.0", "2"},
       {"0.1.1", "32"},
       {"0.1.2", "8"},
       {"0.2.0", "3"},
       {"0.2.1", "1"},
       {"0.3.0", "2"},
       {"0.3.1", "KVCache"},
       {"0.3.2", "2"},
       {"0.3.3", "0"},
       {"0.3.4", "RotatingKvCache"},
       {"0.3.5", "2"},
       {"0.3.6", "4"},
       {"0.3.7", "4"},
       {"0.3.8", "8"},
       {"0.3.9", "5"},
       {"0.3.10", "5"},
       {"1.a.b", "c"},
       {"2.0", "StandardKvCache"},
       {"2.1", "StandardQuantizedKvCache"},
       {"2.2", "MambaCache"},
       {"2.3", "CacheList"}}
  );
  EXPECT_EQ(cache.metadata, (FileMetadata{{"a.b", "c"}}));
  EXPECT_EQ(cache.layers[0].kind, "KVCache");
  EXPECT_EQ(cache.layers[1].meta, (Texts{"2", "32", "8"}));
  EXPECT_EQ(cache.layers[2].kind, "MambaCache");
  EXPECT_EQ(cache.layers[3].meta[4], "RotatingKVCache");
  EXPECT_EQ(cache.layers[3].state.size(), 4U);
}

TEST(PromptCache, ReadsListsOfOlderMlxLmAndOfMlxSwift) {
  const std::vector<RawTensor> nested = {
      rows("0.0.0", 3), rows("0.0.1", 3), rows("0.1.0", 5), rows("0.1.1", 5)
  };
  const auto by_mlx_lm = read(
      nested,
      {{"0.0.0.0", "KVCache"},
       {"0.0.0.1", "RotatingKVCache"},
       {"0.0.1.0", ""},
       {"0.0.1.1.0", "4"},
       {"0.0.1.1.1", "8"},
       {"0.0.1.1.2", "5"},
       {"0.0.1.1.3", "5"},
       {"2.0", "CacheList"}}
  );
  const auto by_swift = read(
      {rows("0.0", 3), rows("0.1", 3), rows("0.2", 5), rows("0.3", 5)},
      {{"0.0.0", "2"},
       {"0.0.1", "KVCacheSimple"},
       {"0.0.2", "2"},
       {"0.0.3", "1"},
       {"0.0.4", ""},
       {"0.0.5", "RotatingKVCache"},
       {"0.0.6", "2"},
       {"0.0.7", "6"},
       {"0.0.8", "4"},
       {"0.0.9", "8"},
       {"0.0.10", "256"},
       {"0.0.11", "5"},
       {"0.0.12", "5"},
       {"0.0.13", "model"},
       {"2.0", "CacheList"}}
  );
  for (const auto& cache : {by_mlx_lm, by_swift}) {
    EXPECT_EQ(
        cache.layers[0].meta,
        (Texts{"2", "KVCache", "2", "0", "RotatingKVCache", "2", "4", "4", "8", "5", "5"})
    );
    EXPECT_EQ(row_numbers(cache.layers[0].state[3]), counting(0, 5));
  }
}

TEST(PromptCache, RestoresAllRowsOfAChunk) {
  // The reference restores offset 4 here and then loses rows; start + rows is what the cache had.
  const auto cache = read(
      {rows("0.0", 4), rows("0.1", 4)}, {{"0.0.0", "4"}, {"0.0.1", "2"}, {"2.0", "ChunkedKVCache"}}
  );
  const TemporaryDir dir;
  write_prompt_cache(dir.path() / "c", cache);
  const auto tensors = read_safetensors(dir.path() / "c");
  EXPECT_EQ(to_integers(tensors.at("0.2")), std::vector<std::int64_t>{6});
}

struct Bad {
  std::string_view says;
  std::vector<RawTensor> tensors;
  Metadata metadata;
};

TEST(PromptCache, RefusesWhatNoCacheHolds) {
  const auto ring = [](const char* keep, const char* max, const char* offset, const char* idx) {
    return Metadata{
        {"0.0.0", keep},
        {"0.0.1", max},
        {"0.0.2", offset},
        {"0.0.3", idx},
        {"2.0", "RotatingKVCache"}
    };
  };
  const std::vector<RawTensor> four = {rows("0.0", 4), rows("0.1", 4)};
  const Metadata plain = {{"0.0", ""}, {"2.0", "KVCache"}};
  const std::vector<Bad> cases = {
      {"meta values", four, {{"0.0.0", "7"}, {"2.0", "KVCache"}}},
      {"expected [B, H_kv, L, D]", {f32_tensor("0.0", {4}, counting(0, 4)), rows("0.1", 4)}, plain},
      {"do not belong together", {rows("0.0", 4), rows("0.1", 5)}, plain},
      {"got 1 arrays", {rows("0.0", 4)}, plain},
      {"does not follow", {rows("0.0", 4), rows("0.2", 4)}, plain},
      {"beyond the 1 layers", {rows("1.0", 4)}, plain},
      {"is no part of a cache", {rows("x", 4)}, plain},
      {"is not known", four, {{"0.0", ""}, {"2.0", "__mlx_lm_state_v1__:KVCache"}}},
      {"of layer '5'", four, {{"2.0", "KVCache"}, {"2.5", "KVCache"}}},
      {"'nan', expected an integer", four, ring("0", "8", "nan", "4")},
      {"'99999999999', expected an integer", four, ring("0", "8", "99999999999", "4")},
      {"keep 8", four, ring("8", "8", "4", "4")},
      {"4 rows at offset 3", four, ring("0", "8", "3", "4")},
      {"4 rows at offset 9", four, ring("0", "8", "9", "4")},
      {"idx is 5", four, ring("0", "4", "9", "5")},
      {"idx is 1", four, ring("2", "4", "9", "1")},
      {"expected 0", {}, ring("4", "8", "5", "5")},
      {"expected 0", {}, ring("0", "8", "0", "3")},
      {"start_position is -1", four, {{"0.0.0", "4"}, {"0.0.1", "-1"}, {"2.0", "ChunkedKVCache"}}},
      {"expected at most 1048576",
       four,
       {{"0.0.0", "1048577"}, {"0.0.1", ""}, {"2.0", "ArraysCache"}}},
      {"has 250001 values, expected at most 1",
       four,
       {{"0.0.0", "1"},
        {"0.0.1",
         [] {
           std::string text = "0";
           for (int i = 0; i < 250000; ++i) {
             text += ",0";
           }
           return text;
         }()},
        {"2.0", "ArraysCache"}}},
      {"children in", four, {{"0.0.0", "2147483647"}, {"0.0.1", "KVCache"}, {"2.0", "CacheList"}}},
      {"are not there",
       four,
       {{"0.0.0", "1"}, {"0.0.1", "KVCache"}, {"0.0.2", "3"}, {"0.0.3", "0"}, {"2.0", "CacheList"}}
      },
      {"belong to no child", four, {{"0.0.0", "0"}, {"2.0", "CacheList"}}},
  };
  for (const Bad& bad : cases) {
    const TemporaryDir dir;
    const auto path = dir.write("cache", testing::safetensors_file(bad.tensors, bad.metadata));
    try {
      read_prompt_cache(path);
      ADD_FAILURE() << "nothing was thrown, expected: " << bad.says;
    } catch (const Error& error) {
      EXPECT_NE(std::string_view(error.what()).find(bad.says), std::string_view::npos)
          << error.what();
    }
  }
}

TEST(PromptCache, ListsNestOnlySoDeep) {
  const auto nested = [](int depth) {
    Metadata metadata = {{"2.0", "CacheList"}};
    std::vector<std::string> meta;
    for (int i = 0; i < depth; ++i) {
      meta.insert(meta.end(), {"1", "CacheList", "0", std::to_string(4 * (depth - 1 - i) + 1)});
    }
    meta.push_back("0");
    for (std::size_t i = 0; i < meta.size(); ++i) {
      metadata["0.0." + std::to_string(i)] = meta[i];
    }
    return metadata;
  };
  EXPECT_EQ(read({}, nested(60)).layers.size(), 1U);
  expect_error(ErrorCode::kCorruptData, {"nested deeper than 64"}, [&] { read({}, nested(70)); });
  expect_error(ErrorCode::kCorruptData, {"nested deeper than 64"}, [&] { read({}, nested(4000)); });
}

TEST(PromptCache, ScalarsOfTheCurrentFormatAreIntegers) {
  const auto file = [](RawTensor offset) {
    return std::pair(
        std::vector<RawTensor>{rows("0.0", 4), rows("0.1", 4), std::move(offset)},
        Metadata{{"1.0", "KVCache"}, {"2.0", ""}, {"2.1.0", "0.2"}, {"2.1.1", "scalar"}}
    );
  };
  const auto good = file(integer("0.2", 3));
  EXPECT_EQ(row_numbers(read(good.first, good.second).layers[0].state[0]), counting(0, 3));
  const auto nan = file(f32_tensor("0.2", {}, {std::numeric_limits<float>::quiet_NaN()}));
  expect_error(ErrorCode::kCorruptData, {"0.2", "F32"}, [&] { read(nan.first, nan.second); });
  const auto list = file({"0.2", "I32", {1}, raw_bytes(std::vector<std::int32_t>{3})});
  expect_error(ErrorCode::kCorruptData, {"0.2", "[1]"}, [&] { read(list.first, list.second); });
  const auto beyond = file(integer("0.2", 5));
  expect_error(ErrorCode::kCorruptData, {"5 rows"}, [&] { read(beyond.first, beyond.second); });
}

// Cut at every byte, a file is refused: it never reads as another cache.
TEST(PromptCache, EveryCutIsRefused) {
  const TemporaryDir dir;
  const auto path = dir.path() / "cut";
  write_prompt_cache(dir.path() / "kinds", read_prompt_cache(golden("kinds.safetensors")));
  write_prompt_cache(dir.path() / "gemma3", read_prompt_cache(golden("gemma3.classic")));
  for (const auto& whole : {dir.path() / "kinds", dir.path() / "gemma3", golden("gemma3.swift")}) {
    std::filesystem::copy_file(whole, path, std::filesystem::copy_options::overwrite_existing);
    for (std::uintmax_t size = std::filesystem::file_size(path); size > 0;) {
      std::filesystem::resize_file(path, --size);
      EXPECT_THROW(read_prompt_cache(path), Error) << whole << " cut to " << size;
    }
  }
}

TEST(PromptCache, AFailedWriteLeavesTheOldFile) {
  const TemporaryDir dir;
  const auto path = dir.write("cache", "old");
  auto cache = read_prompt_cache(golden("llama.classic"));
  Tensor large = cache.layers[0].state[0];
  large.shape = {1, 1 << 10, 1 << 20, 8};
  cache.layers[0].state[0] = large;
  expect_error(ErrorCode::kCapacity, {"8489934592"}, [&] { write_prompt_cache(path, cache); });
  EXPECT_EQ(bytes_of(path), "old");
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(dir.path())) {
    ++files;
  }
  EXPECT_EQ(files, 1U);
}

}  // namespace
}  // namespace saker::load
