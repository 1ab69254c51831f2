// SPDX-License-Identifier: Apache-2.0
#include "saker/load/weight_files.h"

#include "saker/base/error.h"
#include "saker/base/json.h"

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
  return read_weight_files(find_weight_files(dir));
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
  write("model-00002-of-00003.safetensors", shard({"a"}));
  expect_failure(
      ErrorCode::kNotFound, {"model-00001-of-00003.safetensors", "model-00003-of-00003.safetensors"}
  );
  write(
      kIndex,
      index({{"a", "model-00002-of-00003.safetensors"}, {"b", "model-00001-of-00003.safetensors"}})
  );
  expect_failure(ErrorCode::kNotFound, {kIndex, "missing: model-00001-of-00003.safetensors"});
  write("model-00001-of-00003.safetensors", shard({"c"}));
  expect_failure(ErrorCode::kCorruptData, {"model-00001-of-00003.safetensors", "'b'"});
}

TEST_F(WeightFilesTest, ListsAFewOfManyMissingFiles) {
  write("model-00001-of-99999.safetensors", shard({"a"}));
  expect_failure(ErrorCode::kNotFound, {"model-00002-of-99999", "and 99995 more"});
}

TEST_F(WeightFilesTest, IgnoresAStaleIndexBesideAWholeFile) {
  write("model.safetensors", shard({"a"}));
  write(kIndex, index({{"a", "model-00001-of-00002.safetensors"}}));
  const WeightFiles files = find_weight_files(dir_.path());
  EXPECT_EQ(names_of(read_weight_files(files)), std::vector<std::string>{"a"});
  ASSERT_EQ(files.warnings.size(), 1U);
  EXPECT_NE(files.warnings[0].find("ignored"), std::string::npos);
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

TEST_F(WeightFilesTest, RefusesABrokenIndex) {
  write("model.safetensors", shard({"a"}));
  for (const std::string_view text :
       {"{}", "[]", "7", R"({"weight_map":[]})", R"({"weight_map":{}})", R"({"weight_map":null})"
       }) {
    SCOPED_TRACE(text);
    write(kIndex, text);
    expect_failure(ErrorCode::kCorruptData, {kIndex, "weight_map"});
  }
  write(kIndex, index({{"a", 7}}));
  expect_failure(ErrorCode::kCorruptData, {kIndex, "is 7"});
  write(kIndex, "{");
  expect_failure(ErrorCode::kCorruptData, {kIndex, "byte 2"});
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
