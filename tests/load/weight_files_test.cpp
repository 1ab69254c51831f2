// SPDX-License-Identifier: Apache-2.0
#include "saker/load/files/weight_files.h"

#include "saker/base/error.h"
#include "saker/base/json/json.h"

#include "tests/support/expect_error.h"
#include "tests/support/safetensors_writer.h"
#include "tests/support/temporary_dir.h"
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace saker::load {
namespace {

using testing::expect_error;
using testing::f32_tensor;
using testing::safetensors_file;
using testing::TemporaryDir;

constexpr const char* kIndex = "model.safetensors.index.json";

std::string shard(const std::vector<std::string>& names) {
  std::vector<testing::RawTensor> tensors;
  tensors.reserve(names.size());
  for (const std::string& name : names) {
    tensors.push_back(f32_tensor(name, {1}, {1}));
  }
  return safetensors_file(tensors);
}

std::string index(const std::vector<std::pair<std::string, Json>>& entries) {
  Json map = Json::object();
  for (const auto& [name, file] : entries) {
    map[name] = file;
  }
  return Json{{"metadata", {{"total_size", 4}}}, {"weight_map", map}}.dump();
}

std::vector<std::string> names_of(const TensorMap& tensors) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors) {
    names.push_back(name);
  }
  return names;
}

TensorMap read_all(const std::filesystem::path& dir) {
  return read_weight_files(find_weight_files(dir)).tensors;
}

// Of a model of so many layers.
void read_complete(const std::filesystem::path& dir, int layers) {
  check_complete(read_model_tensors(dir), {{"num_hidden_layers", layers}});
}

class WeightFilesTest : public ::testing::Test {
 protected:
  void write(std::string_view name, std::string_view bytes) const { dir_.write(name, bytes); }

  TensorMap read() const { return read_all(dir_.path()); }

  void expect_failure(ErrorCode code, const std::vector<std::string_view>& words) const {
    expect_error(code, words, [this] { read(); });
  }

  TemporaryDir dir_;
};

TEST_F(WeightFilesTest, OneFile) {
  write("model.safetensors", shard({"a", "b"}));
  write("adapters.safetensors", "not ours");
  EXPECT_EQ(names_of(read()), (std::vector<std::string>{"a", "b"}));
}

TEST_F(WeightFilesTest, ShardsWithAndWithoutAnIndex) {
  write("model-00001-of-00002.safetensors", shard({"a"}));
  write("model-00002-of-00002.safetensors", shard({"b", "c"}));
  EXPECT_EQ(names_of(read()), (std::vector<std::string>{"a", "b", "c"}));
  write(
      kIndex,
      index(
          {{"a", "model-00001-of-00002.safetensors"},
           {"b", "model-00002-of-00002.safetensors"},
           {"c", "model-00002-of-00002.safetensors"}}
      )
  );
  EXPECT_EQ(names_of(read()), (std::vector<std::string>{"a", "b", "c"}));
}

TEST_F(WeightFilesTest, TheIndexDecidesBetweenCopies) {
  write("model-a.safetensors", safetensors_file({f32_tensor("x", {1}, {1})}));
  write(
      "model-b.safetensors",
      safetensors_file({f32_tensor("x", {1}, {2}), f32_tensor("y", {1}, {3})})
  );
  expect_error(ErrorCode::kCorruptData, {"'x'", "model-a", "model-b"}, [this] { read(); });
  write(kIndex, index({{"x", "model-b.safetensors"}, {"y", "model-b.safetensors"}}));
  EXPECT_EQ(to_floats(read().at("x")), std::vector<float>{2});
}

TEST_F(WeightFilesTest, NamesWhatIsMissing) {
  expect_failure(ErrorCode::kNotFound, {dir_.path().native(), "no model*.safetensors"});
  write(kIndex, index({{"a", "model-00001-of-00002.safetensors"}, {"b", "b.safetensors"}}));
  expect_failure(ErrorCode::kNotFound, {kIndex, "b.safetensors, model-00001-of-00002.safetensors"});
  std::filesystem::remove(dir_.path() / kIndex);
  write("model-00002-of-00003.safetensors", shard({"a"}));
  expect_failure(
      ErrorCode::kNotFound, {"model-00001-of-00003.safetensors", "model-00003-of-00003.safetensors"}
  );
}

TEST_F(WeightFilesTest, WhatTheIndexPromisesIsMissedWhereItIsNeeded) {
  const std::string up = "model.layers.{}.up.weight";
  write(
      "model-00001-of-00002.safetensors", shard({"model.layers.0.up.weight", "model.norm.weight"})
  );
  write(
      kIndex,
      index(
          {{"model.layers.0.up.weight", "model-00001-of-00002.safetensors"},
           {"model.norm.weight", "model-00001-of-00002.safetensors"},
           {"model.layers.1.up.weight", "model-00002-of-00002.safetensors"},
           {"mtp.layers.0.up.weight", "mtp.safetensors"},
           {"model.layers.0.rotary_emb.inv_freq", "model-00001-of-00002.safetensors"}}
      )
  );
  const ModelTensors read = read_model_tensors(dir_.path());
  EXPECT_EQ(read.tensors.size(), 2U);
  EXPECT_EQ(read.errors.size(), 3U);
  ASSERT_EQ(read.warnings.size(), 1U);
  EXPECT_NE(
      read.warnings[0].find("not there: model-00002-of-00002.safetensors, mtp.safetensors"),
      std::string::npos
  );
  EXPECT_NO_THROW(read_complete(dir_.path(), 1));
  expect_error(
      ErrorCode::kNotFound,
      {"'model.layers.1.up.weight' is missing", kIndex, "model-00002-of-00002", "is not there"},
      [&] { read_complete(dir_.path(), 2); }
  );
  write("model-00002-of-00002.safetensors", shard({"c"}));
  expect_error(ErrorCode::kNotFound, {"'model.layers.1.up.weight' is missing", "lacks it"}, [&] {
    read_complete(dir_.path(), 2);
  });
  EXPECT_NE(read_model_tensors(dir_.path()).warnings.back().find("promises"), std::string::npos);
}

TEST_F(WeightFilesTest, TheTokenTableAndTheLastNormAreNeeded) {
  for (const std::string name : {"model.embed_tokens.weight", "language_model.model.norm.weight"}) {
    write("model.safetensors", shard({"a"}));
    write(kIndex, index({{"a", "model.safetensors"}, {name, "model-2.safetensors"}}));
    expect_error(ErrorCode::kNotFound, {name, "model-2.safetensors"}, [&] {
      read_complete(dir_.path(), 2);
    });
  }
}

TEST_F(WeightFilesTest, ATensorIsTakenFromWhereItIs) {
  write("model-00001-of-00002.safetensors", shard({"a", "b"}));
  write("model-00002-of-00002.safetensors", shard({"c"}));
  write(
      kIndex,
      index(
          {{"a", "model-00001-of-00002.safetensors"},
           {"b", "model-00002-of-00002.safetensors"},
           {"c", "model-00001-of-00002.safetensors"}}
      )
  );
  EXPECT_EQ(names_of(read()), (std::vector<std::string>{"a", "b", "c"}));
}

TEST_F(WeightFilesTest, WhatTheIndexLeavesOutIsReadBesideIt) {
  write("model.safetensors", shard({"q.weight", "packed.qweight", "norm.weight"}));
  write(
      "model-head.safetensors",
      safetensors_file(
          {f32_tensor("head.weight", {1}, {1}),
           f32_tensor("q.weight", {1}, {2}),  // Decided by the index.
           f32_tensor("q.scales", {1}, {3}),  // The same layer in another form.
           f32_tensor("q.bias", {1}, {4}),
           f32_tensor("packed.weight", {1}, {5})}
      )
  );
  write(
      kIndex,
      index(
          {{"q.weight", "model.safetensors"},
           {"packed.qweight", "model.safetensors"},
           {"norm.weight", "model.safetensors"}}
      )
  );
  const ModelTensors read = read_model_tensors(dir_.path());
  EXPECT_EQ(
      names_of(read.tensors),
      (std::vector<std::string>{
          "head.weight", "norm.weight", "packed.qweight", "q.bias", "q.weight"
      })
  );
  EXPECT_EQ(to_floats(read.tensors.at("q.weight")), std::vector<float>{1});
  EXPECT_EQ(read.file_of.at("head.weight").filename(), "model-head.safetensors");
  ASSERT_EQ(read.warnings.size(), 1U);
  EXPECT_NE(read.warnings[0].find("leaves out model-head.safetensors"), std::string::npos);
  // Two such files that differ: who asks for it is told.
  write("model-other.safetensors", shard({"head.weight", "more.weight"}));
  const ModelTensors two = read_model_tensors(dir_.path());
  EXPECT_TRUE(two.tensors.contains("more.weight"));
  EXPECT_FALSE(two.tensors.contains("head.weight"));
  EXPECT_EQ(two.errors.at("head.weight").code(), ErrorCode::kCorruptData);
}

TEST_F(WeightFilesTest, FilesThatNothingNeedsStopNoOne) {
  write("model.safetensors", shard({"a"}));
  write(kIndex, index({{"a", "model.safetensors"}}));
  write("model-old.safetensors", "torn");
  const ModelTensors read = read_model_tensors(dir_.path());
  EXPECT_EQ(names_of(read.tensors), std::vector<std::string>{"a"});
  ASSERT_EQ(read.warnings.size(), 1U);
  EXPECT_NE(read.warnings[0].find("model-old.safetensors' is in no index"), std::string::npos);
}

TEST_F(WeightFilesTest, TensorsOfStrangeDtypesAreErrorsOfWhoAsks) {
  write(
      "model.safetensors",
      safetensors_file({f32_tensor("a", {1}, {1}), {"freqs", "C64", {2}, std::string(16, 'c')}})
  );
  const ModelTensors read = read_model_tensors(dir_.path());
  EXPECT_EQ(names_of(read.tensors), std::vector<std::string>{"a"});
  EXPECT_EQ(read.errors.at("freqs").code(), ErrorCode::kUnsupported);
  ASSERT_EQ(read.warnings.size(), 1U);
  EXPECT_NE(read.warnings[0].find("'freqs' (C64)"), std::string::npos);
}

TEST_F(WeightFilesTest, ListsAFewOfManyMissingFiles) {
  write("model-00001-of-99999.safetensors", shard({"a"}));
  expect_failure(ErrorCode::kNotFound, {"model-00002-of-99999", "and 99995 more"});
}

TEST_F(WeightFilesTest, IgnoresAStaleIndex) {
  const auto expect_ignored = [this](const std::vector<std::string>& names) {
    const ModelTensors read = read_model_tensors(dir_.path());
    EXPECT_EQ(names_of(read.tensors), names);
    ASSERT_EQ(read.warnings.size(), 1U);
    EXPECT_NE(read.warnings[0].find("names none of the files"), std::string::npos);
  };
  write("model.safetensors", shard({"a"}));
  write(kIndex, index({{"a", "model-00001-of-00005.safetensors"}}));
  expect_ignored({"a"});
  std::filesystem::remove(dir_.path() / "model.safetensors");
  write("model-00001-of-00002.safetensors", shard({"a"}));
  expect_failure(ErrorCode::kNotFound, {"missing: model-00002-of-00002.safetensors"});
  write("model-00002-of-00002.safetensors", shard({"b"}));
  expect_ignored({"a", "b"});
}

TEST_F(WeightFilesTest, StaysInTheFolder) {
  const std::filesystem::path inner = dir_.path() / "inner";
  write("secret.safetensors", shard({"a"}));
  const std::string absolute = (dir_.path() / "secret.safetensors").native();
  for (const std::string& name :
       {std::string("../secret.safetensors"),
        absolute,
        std::string("sub/x.safetensors"),
        std::string(".."),
        std::string("."),
        std::string(),
        std::string("a\0b.safetensors", 15),
        std::string("a\nb.safetensors"),
        std::string("..\\secret.safetensors"),
        std::string(300, 'x')}) {
    SCOPED_TRACE(name);
    dir_.write(std::string("inner/") + kIndex, index({{"a", name}}));
    expect_error(ErrorCode::kCorruptData, {kIndex, "'a'", "same folder"}, [&] { read_all(inner); });
  }
}

TEST_F(WeightFilesTest, ABrokenIndexIsRefusedWhereNoFileIsThere) {
  const auto expect_broken = [this](std::string_view text, std::string_view word) {
    SCOPED_TRACE(text);
    write(kIndex, text);
    std::filesystem::remove(dir_.path() / "model.safetensors");
    expect_failure(ErrorCode::kCorruptData, {kIndex, word});
    write("model.safetensors", shard({"a"}));
    const ModelTensors read = read_model_tensors(dir_.path());
    EXPECT_EQ(names_of(read.tensors), std::vector<std::string>{"a"});
    ASSERT_EQ(read.warnings.size(), 1U);
    EXPECT_NE(read.warnings[0].find("is broken"), std::string::npos);
  };
  for (const std::string_view text :
       {"{}", "[]", "7", R"({"weight_map":[]})", R"({"weight_map":{}})", R"({"weight_map":null})"
       }) {
    expect_broken(text, "weight_map");
  }
  expect_broken(index({{"a", 7}}), "is 7");
  expect_broken("{", "byte 2");
}

TEST_F(WeightFilesTest, RefusesABrokenShard) {
  write("model.safetensors", shard({"a"}).substr(0, 20));
  expect_failure(ErrorCode::kCorruptData, {"model.safetensors", "ends inside the header"});
  std::filesystem::remove(dir_.path() / "model.safetensors");
  std::filesystem::create_directory(dir_.path() / "model.safetensors");
  expect_failure(ErrorCode::kInvalidArgument, {"model.safetensors", "not a regular file"});
}

}  // namespace
}  // namespace saker::load
