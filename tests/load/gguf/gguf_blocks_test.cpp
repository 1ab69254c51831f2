// SPDX-License-Identifier: Apache-2.0
// What becomes of a model's blocks.
#include "saker/base/tensor.h"
#include "saker/kernels/layout/block_format.h"
#include "saker/kernels/quantize/quantize_loops.h"
#include "saker/load/gguf/blocks/gguf_types.h"
#include "saker/load/gguf/gguf_model.h"
#include "saker/load/importers/lazy_tensor.h"
#include "saker/load/importers/tensor_maker.h"

#include "tests/load/gguf/small_llama.h"
#include "tests/support/temporary_dir.h"
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace saker::load::gguf {
namespace {

using saker::testing::TemporaryDir;

importers::ImportedModel open(const TemporaryDir& dir, const std::string& file) {
  return open_gguf(dir.write("model.gguf", file));
}

std::vector<float> floats(const TensorMap& tensors, const std::string& name) {
  return to_floats(tensors.at(name));
}

TEST(GgufBlocksTest, CodesStayAndRotatedRowsMove) {
  const TemporaryDir dir;
  const auto model = open(dir, llama(kQ40, q4_blocks).file());
  const Json expected = {{"group_size", 32}, {"bits", 4}, {"mode", "affine"}};
  EXPECT_EQ(model.config["quantization"], expected);
  EXPECT_EQ(model.config["torch_dtype"], "float16");
  EXPECT_TRUE(model.notes.size() == 1 && model.notes[0].find("vocabulary") != std::string::npos);
  const auto tensors = importers::make_tensors(model);
  const auto& codes = tensors.at("model.layers.0.self_attn.q_proj.weight");
  EXPECT_EQ(codes.dtype, DType::kUInt32);
  EXPECT_EQ(codes.shape, (std::vector<std::int64_t>{64, 8}));
  // Our row 1 of head 0 is the file's row 2: two blocks of 18 bytes in each.
  const std::string file = q4_blocks(kHidden * kHidden);
  const auto* row = reinterpret_cast<const unsigned char*>(codes.bytes().data()) + 32;
  const auto* block = reinterpret_cast<const unsigned char*>(file.data()) + 4 * 18 + 2;
  EXPECT_EQ(row[0] & 15, block[0] & 15);
  EXPECT_EQ(row[0] >> 4, block[1] & 15);
  EXPECT_EQ(row[15] >> 4, block[15] >> 4);
  const auto scale = floats(tensors, "model.layers.0.self_attn.q_proj.scales");
  const auto bias = floats(tensors, "model.layers.0.self_attn.q_proj.biases");
  EXPECT_EQ(bias[2], -8 * scale[2]);
}

// Rows of blocks as the file has them, but for those that rotate; every weight is that of the
// affine codes.
TEST(GgufBlocksTest, BlocksStayAsTheyAre) {
  const TemporaryDir dir;
  const auto path = dir.write("model.gguf", llama(kQ40, q4_blocks).file());
  const BlockModel blocks = open_gguf_blocks(path);
  EXPECT_EQ(blocks.formats.size(), 8U);
  EXPECT_FALSE(blocks.model.config.contains("quantization"));
  const auto tensors = importers::make_tensors(blocks.model);
  const auto converted = importers::make_tensors(open_gguf(path));
  for (const auto& [name, format] : blocks.formats) {
    EXPECT_EQ(format, kernels::weight_format(kernels::BlockKind::kQ40)) << name;
    const Tensor& weight = tensors.at(name + ".weight");
    EXPECT_EQ(weight.dtype, DType::kUInt8);
    EXPECT_EQ(weight.shape.back() * 4, converted.at(name + ".scales").shape.back() * 18 * 4);
    const auto bytes = weight.bytes();
    const auto scales = floats(converted, name + ".scales");
    for (std::size_t i = 0; i < scales.size(); ++i) {
      float scale = 0.0F;
      kernels::quantize_loops().widen(&bytes[18 * i], DType::kFloat16, 1, &scale);
      EXPECT_EQ(scale, scales[i]) << name << " block " << i;
    }
  }
}

// Blocks that name codes of a table stay as they are, too; rows that rotate are moved.
TEST(GgufBlocksTest, RotatedRowsMoveWhole) {
  const TemporaryDir dir;
  const auto path = dir.write("model.gguf", llama(kIq4Nl, q4_blocks).file());
  const BlockModel blocks = open_gguf_blocks(path);
  EXPECT_EQ(blocks.formats.size(), 8U);
  const auto tensors = importers::make_tensors(blocks.model);
  const std::string name = "model.layers.0.self_attn.q_proj";
  EXPECT_EQ(blocks.formats.at(name), kernels::weight_format(kernels::BlockKind::kIq4Nl));
  const Tensor& weight = tensors.at(name + ".weight");
  ASSERT_EQ(weight.shape, (std::vector<std::int64_t>{kHidden, 2 * 18}));
  // Our row 1 of head 0 is the file's row 2: two blocks of 18 bytes in each.
  const std::string file = q4_blocks(kHidden * kHidden);
  std::vector<float> expected(kHidden);
  to_floats(
      TensorType::kIq4Nl,
      reinterpret_cast<const std::byte*>(file.data()) + 4 * 18,
      kHidden,
      expected.data()
  );
  std::vector<float> values(kHidden);
  to_floats(TensorType::kIq4Nl, weight.bytes().data() + 36, kHidden, values.data());
  EXPECT_EQ(values, expected);
}

TEST(GgufBlocksTest, SmallFloatsKeepTheirFormat) {
  const auto small_floats = [](std::size_t count) {
    std::string bytes;
    for (std::size_t i = 0; i < count / 32 * 17; ++i) {
      bytes.push_back(static_cast<char>(i % 17 == 0 ? 120 + i % 5 : i * 7 % 256));
    }
    return bytes;
  };
  const TemporaryDir dir;
  const auto path = dir.write("model.gguf", llama(kMxfp4, small_floats).file());
  const Json expected = {{"group_size", 32}, {"bits", 4}, {"mode", "mxfp4"}};
  const BlockModel blocks = open_gguf_blocks(path);
  EXPECT_TRUE(blocks.formats.empty());
  EXPECT_EQ(blocks.model.config["quantization"], expected);
  const auto tensors = importers::make_tensors(blocks.model);
  const std::string name = "model.layers.0.self_attn.v_proj";
  EXPECT_EQ(tensors.at(name + ".weight").shape, (std::vector<std::int64_t>{32, kHidden / 8}));
  EXPECT_EQ(tensors.at(name + ".scales").shape, (std::vector<std::int64_t>{32, kHidden / 32}));
  EXPECT_EQ(tensors.at(name + ".scales").bytes()[0], std::byte{120});
}

TEST(GgufBlocksTest, MakesTensorsOneByOne) {
  const TemporaryDir dir;
  const auto model = open(dir, llama(kQ40, q4_blocks).file());
  const auto expected = importers::make_tensors(model);
  importers::TensorMaker maker(model);
  const auto headers = maker.tensors();
  ASSERT_EQ(headers.size(), expected.size());
  for (const auto& [name, tensor] : expected) {
    EXPECT_EQ(headers.at(name).data, nullptr);
    EXPECT_EQ(headers.at(name).shape, tensor.shape);
    const Tensor made = maker.make(name);
    EXPECT_EQ(made.dtype, tensor.dtype);
    EXPECT_TRUE(std::ranges::equal(made.bytes(), tensor.bytes())) << name;
  }
}

}  // namespace
}  // namespace saker::load::gguf
