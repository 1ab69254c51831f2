// SPDX-License-Identifier: Apache-2.0
#include "saker/load/files/model_writer.h"

#include "saker/base/error.h"
#include "saker/base/json/json.h"
#include "saker/load/files/weight_files.h"

#include "tests/support/expect_error.h"
#include "tests/support/temporary_dir.h"
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

namespace saker::load {
namespace {

namespace fs = std::filesystem;
using testing::expect_error;
using testing::TemporaryDir;

std::vector<PlannedTensor> three_tensors() {
  return {
      {"b", DType::kUInt8, {8}},
      {"a", DType::kInt16, {2, 2}},
      {"c", DType::kUInt8, {0, 3}},
  };
}

std::vector<std::byte> bytes_from(int first, std::size_t count) {
  std::vector<std::byte> bytes(count);
  std::generate(bytes.begin(), bytes.end(), [&] { return static_cast<std::byte>(first++); });
  return bytes;
}

// Tensor i holds first + 0, 1, 2, ... with first = 16 * i.
void write_all(ModelWriter& writer) {
  for (std::size_t i = writer.tensors().size(); i-- > 0;) {
    const auto bytes = bytes_from(static_cast<int>(16 * i), writer.tensors()[i].nbytes());
    const std::size_t half = bytes.size() / 2;
    writer.write(i, half, std::span(bytes).subspan(half));
    writer.write(i, 0, std::span(bytes).first(half));
  }
}

std::set<std::string> names_in(const fs::path& dir) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(dir)) {
    names.insert(entry.path().filename());
  }
  return names;
}

void expect_three_tensors(const TensorMap& tensors) {
  ASSERT_EQ(tensors.size(), 3U);
  int first = 0;
  for (const PlannedTensor& planned : three_tensors()) {
    const Tensor& tensor = tensors.at(planned.name);
    EXPECT_EQ(tensor.dtype, planned.dtype);
    EXPECT_EQ(tensor.shape, planned.shape);
    EXPECT_TRUE(std::ranges::equal(tensor.bytes(), bytes_from(first, planned.nbytes())));
    first += 16;
  }
}

TEST(ModelWriterTest, WritesOneFileWithItsIndex) {
  const TemporaryDir dir;
  const fs::path model = dir.path() / "new" / "model";
  ModelWriter writer(model, three_tensors());
  write_all(writer);
  writer.write_text("config.json", "{}");
  EXPECT_FALSE(fs::exists(model));
  writer.commit(7);

  EXPECT_EQ(names_in(dir.path() / "new"), std::set<std::string>{"model"});
  EXPECT_EQ(
      names_in(model),
      (std::set<std::string>{"config.json", "model.safetensors", "model.safetensors.index.json"})
  );
  expect_three_tensors(read_weight_files(find_weight_files(model)).tensors);
  const Json index = read_json_file(model / "model.safetensors.index.json");
  const Json expected = parse_json(
      R"({"metadata": {"total_size": 16, "total_parameters": 7},
          "weight_map": {"a": "model.safetensors", "b": "model.safetensors",
                         "c": "model.safetensors"}})",
      "expected"
  );
  EXPECT_EQ(index, expected);
  EXPECT_EQ(read_safetensors_header(model / "model.safetensors").metadata.at("format"), "mlx");
}

TEST(ModelWriterTest, CutsShardsAtTheLimit) {
  const TemporaryDir dir;
  const fs::path model = dir.path() / "model";
  ModelWriter writer(model, three_tensors(), 8);
  write_all(writer);
  writer.commit(7);
  const auto files = find_weight_files(model);
  ASSERT_EQ(files.paths.size(), 2U);
  EXPECT_EQ(files.paths[0].filename(), "model-00001-of-00002.safetensors");
  EXPECT_EQ(files.shard_of.at("b").filename(), "model-00001-of-00002.safetensors");
  EXPECT_EQ(files.shard_of.at("a").filename(), "model-00002-of-00002.safetensors");
  expect_three_tensors(read_weight_files(files).tensors);
}

TEST(ModelWriterTest, GivesLargeTensorsShardsOfTheirOwn) {
  const TemporaryDir dir;
  ModelWriter writer(dir.path() / "model", three_tensors(), 1);
  write_all(writer);
  writer.commit(7);
  const auto files = find_weight_files(dir.path() / "model");
  EXPECT_EQ(files.paths.size(), 3U);
  expect_three_tensors(read_weight_files(files).tensors);
}

TEST(ModelWriterTest, LeavesNothingWithoutCommit) {
  const TemporaryDir dir;
  {
    ModelWriter writer(dir.path() / "model", three_tensors());
    write_all(writer);
  }
  EXPECT_TRUE(names_in(dir.path()).empty());
}

TEST(ModelWriterTest, RefusesToForgetATensor) {
  const TemporaryDir dir;
  {
    ModelWriter writer(dir.path() / "model", three_tensors());
    expect_error(ErrorCode::kInternal, {"0 bytes", "16"}, [&] { writer.commit(0); });
  }
  EXPECT_TRUE(names_in(dir.path()).empty());
}

TEST(ModelWriterTest, RefusesWhatExists) {
  const TemporaryDir dir;
  dir.write("full/file", "x");
  dir.write("file", "x");
  for (const char* name : {"full", "full/", "file"}) {
    expect_error(ErrorCode::kInvalidArgument, {"exists", "empty folder"}, [&] {
      ModelWriter(dir.path() / name, three_tensors());
    });
  }
  expect_error(ErrorCode::kNotFound, {"file/model"}, [&] {
    ModelWriter(dir.path() / "file" / "model", three_tensors());
  });
  fs::create_directory(dir.path() / "empty");
  ModelWriter writer(dir.path() / "empty/", three_tensors());
  write_all(writer);
  writer.commit(7);
  expect_three_tensors(read_weight_files(find_weight_files(dir.path() / "empty")).tensors);
}

TEST(ModelWriterTest, RefusesMoreThanTheDiskHolds) {
  const TemporaryDir dir;
  const std::vector<PlannedTensor> huge = {{"a", DType::kUInt8, {std::int64_t{1} << 60}}};
  expect_error(ErrorCode::kCapacity, {"bytes are free", "1152921504606846976"}, [&] {
    ModelWriter(dir.path() / "model", huge);
  });
  EXPECT_TRUE(names_in(dir.path()).empty());
}

TEST(ModelWriterTest, CopiesTheTokenizer) {
  const TemporaryDir dir;
  dir.write("source/tokenizer.json", "tokens");
  dir.write("source/chat_template.jinja", "template");
  dir.write("source/additional_chat_templates/tool_use.jinja", "tools");
  dir.write("source/config.json", "not this");
  dir.write("source/model.safetensors", "nor this");
  ModelWriter writer(dir.path() / "model", {});
  EXPECT_EQ(
      writer.copy_files(dir.path() / "source"),
      (std::vector<std::string>{
          "tokenizer.json", "chat_template.jinja", "additional_chat_templates/tool_use.jinja"
      })
  );
  writer.commit(0);
  EXPECT_EQ(
      names_in(dir.path() / "model"),
      (std::set<std::string>{
          "additional_chat_templates",
          "chat_template.jinja",
          "model.safetensors.index.json",
          "tokenizer.json"
      })
  );
}

}  // namespace
}  // namespace saker::load
