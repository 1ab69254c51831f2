// SPDX-License-Identifier: Apache-2.0
#include "saker/load/export/gguf_writer.h"

#include "saker/load/gguf/gguf_file.h"

#include "tests/support/temporary_dir.h"
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace saker::load::gguf {
namespace {

std::string bytes_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(GgufWriter, TheReaderFindsWhatWasWritten) {
  const testing::TemporaryDir dir;
  const auto path = dir.path() / "model.gguf";
  const Metadata metadata{
      {"general.architecture", std::string("llama")},
      {"a.flag", true},
      {"a.count", std::uint32_t{4000000000}},
      {"a.below", std::int32_t{-7}},
      {"a.number", 0.1F},
      {"a.flags", std::vector<bool>{true, false}},
      {"a.list", std::vector<std::int32_t>{1, -2, 3}},
      {"a.floats", std::vector<float>{0.5F, -1.5F}},
      {"a.names", std::vector<std::string>{"", "é", "c"}},
  };
  GgufWriter writer(
      path, metadata, {{"first", TensorType::kFloat32, {3}}, {"second", TensorType::kQ80, {2, 64}}}
  );
  std::vector<std::byte> blocks(2 * 2 * 34, std::byte{7});
  writer.write(1, 68, std::span(blocks).subspan(68));
  writer.write(1, 0, std::span(blocks).first(68));
  const std::vector<float> floats{1.0F, 2.0F, 3.0F};
  writer.write(0, 0, std::as_bytes(std::span(floats)));
  EXPECT_FALSE(std::filesystem::exists(path));
  writer.commit();

  const std::string file = bytes_of(path);
  EXPECT_EQ(file.size(), writer.file_bytes());
  const Header header = parse_gguf(std::as_bytes(std::span(file)), "file");
  EXPECT_EQ(header.string("general.architecture"), "llama");
  EXPECT_EQ(header.boolean("a.flag"), true);
  EXPECT_EQ(header.integer("a.count"), 4000000000);
  EXPECT_EQ(header.integer("a.below"), -7);
  EXPECT_EQ(header.number("a.number"), 0.1);
  EXPECT_EQ(header.numbers("a.list"), (std::vector<double>{1, -2, 3}));
  EXPECT_EQ(header.numbers("a.floats"), (std::vector<double>{0.5, -1.5}));
  EXPECT_EQ(header.strings("a.names"), (std::vector<std::string_view>{"", "é", "c"}));
  ASSERT_EQ(header.tensors.size(), 2U);
  EXPECT_EQ(header.tensors[0].name, "first");
  EXPECT_EQ(header.tensors[0].begin % 32, 0U);
  EXPECT_EQ(std::memcmp(file.data() + header.tensors[0].begin, floats.data(), 12), 0);
  EXPECT_EQ(header.tensors[1].shape, (std::vector<std::int64_t>{2, 64}));
  EXPECT_EQ(header.tensors[1].type, TensorType::kQ80);
  EXPECT_EQ(header.tensors[1].begin % 32, 0U);
  EXPECT_EQ(std::memcmp(file.data() + header.tensors[1].begin, blocks.data(), blocks.size()), 0);
  EXPECT_EQ(file.size() % 32, 0U);
}

TEST(GgufWriter, AFileWithoutACommitIsNotThere) {
  const testing::TemporaryDir dir;
  const auto path = dir.path() / "model.gguf";
  {
    const GgufWriter writer(path, {}, {{"first", TensorType::kFloat32, {3}}});
  }
  EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
}

}  // namespace
}  // namespace saker::load::gguf
