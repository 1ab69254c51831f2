// SPDX-License-Identifier: Apache-2.0
#include "saker/load/importers/expert_blocks.h"

#include "saker/base/error.h"
#include "saker/base/tensor.h"
#include "saker/load/files/quantization.h"
#include "saker/load/importers/quantized_folder.h"

#include "tests/nn/random_weights.h"
#include "tests/support/expect_error.h"
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace saker::load::importers {
namespace {

using nn::float_tensor;
using nn::make_tensor;
using testing::expect_error;

constexpr std::int64_t kExperts = 3;
constexpr std::int64_t kInner = 5;
constexpr std::int64_t kGroups = 2;
constexpr std::int64_t kHidden = 32 * kGroups;
const std::string kScope = "model.layers.0.mlp.experts";
const Json kSection = {{"quant_method", "mxfp4"}};

// Bytes that all differ from their neighbours.
std::vector<std::uint8_t> counted(std::int64_t count, int start) {
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::uint8_t>(static_cast<std::size_t>(start) + i * 37 % 251);
  }
  return bytes;
}

TensorMap published() {
  constexpr std::int64_t kRows = 2 * kInner;
  TensorMap tensors;
  tensors[kScope + ".gate_up_proj_blocks"] = make_tensor(
      DType::kUInt8, {kExperts, kRows, kGroups, 16}, counted(kExperts * kRows * kGroups * 16, 1)
  );
  tensors[kScope + ".gate_up_proj_scales"] = make_tensor(
      DType::kUInt8, {kExperts, kRows, kGroups}, counted(kExperts * kRows * kGroups, 2)
  );
  std::vector<float> bias(kExperts * kRows);
  for (std::size_t i = 0; i < bias.size(); ++i) {
    bias[i] = static_cast<float>(i);
  }
  tensors[kScope + ".gate_up_proj_bias"] = float_tensor({kExperts, kRows}, bias);
  tensors[kScope + ".down_proj_blocks"] =
      make_tensor(DType::kUInt8, {kExperts, kHidden, 1, 16}, counted(kExperts * kHidden * 16, 3));
  tensors[kScope + ".down_proj_scales"] =
      make_tensor(DType::kUInt8, {kExperts, kHidden, 1}, counted(kExperts * kHidden, 4));
  tensors["model.norm.weight"] = float_tensor({2}, {1, 2});
  return tensors;
}

ImportedModel read(const TensorMap& tensors) {
  return read_quantized({{"quantization_config", kSection}}, tensors).value();
}

// Row `row` of an expert in a tensor whose first axes are experts and rows.
std::string row_of(const Tensor& tensor, std::int64_t expert, std::int64_t row) {
  const auto rows = tensor.shape[0] * tensor.shape[1];
  const std::size_t size = tensor.nbytes() / static_cast<std::size_t>(rows);
  const auto at = static_cast<std::size_t>(expert * tensor.shape[1] + row) * size;
  return {reinterpret_cast<const char*>(tensor.data.get()) + at, size};
}

TEST(ExpertBlocks, AreMlxsCodesBitForBit) {
  const TensorMap from = published();
  const ImportedModel model = read(from);
  const TensorMap tensors = make_tensors(model);
  using Shape = std::vector<std::int64_t>;
  for (const auto& [name, first] : {std::pair("gate_proj", 0), std::pair("up_proj", 1)}) {
    const std::string path = kScope + "." + name;
    EXPECT_EQ(tensors.at(path + ".weight").dtype, DType::kUInt32);
    EXPECT_EQ(tensors.at(path + ".weight").shape, (Shape{kExperts, kInner, kHidden / 8}));
    EXPECT_EQ(tensors.at(path + ".scales").shape, (Shape{kExperts, kInner, kGroups}));
    for (std::int64_t expert = 0; expert < kExperts; ++expert) {
      for (std::int64_t row = 0; row < kInner; ++row) {
        const std::int64_t source = 2 * row + first;
        EXPECT_EQ(
            row_of(tensors.at(path + ".weight"), expert, row),
            row_of(from.at(kScope + ".gate_up_proj_blocks"), expert, source)
        );
        EXPECT_EQ(
            row_of(tensors.at(path + ".scales"), expert, row),
            row_of(from.at(kScope + ".gate_up_proj_scales"), expert, source)
        );
        EXPECT_EQ(
            row_of(tensors.at(path + ".bias"), expert, row),
            row_of(from.at(kScope + ".gate_up_proj_bias"), expert, source)
        );
      }
    }
    const auto quantization = parse_quantization(model.config);
    const auto own = quantization.overrides.find(path);
    const auto format = own != quantization.overrides.end() ? own->second : quantization.format;
    EXPECT_EQ(format, (kernels::WeightFormat{kernels::WeightKind::kMxfp4, 4, 32}));
  }
  const Tensor& down = tensors.at(kScope + ".down_proj.weight");
  EXPECT_EQ(down.shape, (Shape{kExperts, kHidden, 4}));
  EXPECT_EQ(
      std::memcmp(down.data.get(), from.at(kScope + ".down_proj_blocks").data.get(), down.nbytes()),
      0
  );
  EXPECT_FALSE(tensors.contains(kScope + ".gate_up_proj_scales"));
  EXPECT_TRUE(tensors.contains("model.norm.weight"));
}

TEST(ExpertBlocks, BadShapesAreNamed) {
  const auto refuse = [](const std::string& name, std::vector<std::int64_t> shape) {
    TensorMap tensors = published();
    tensors[kScope + name].shape = std::move(shape);
    expect_error(ErrorCode::kCorruptData, {kScope + name}, [&] { make_tensors(read(tensors)); });
  };
  refuse(".gate_up_proj_blocks", {kExperts, 2 * kInner, kGroups * 16});
  refuse(".gate_up_proj_blocks", {kExperts, 2 * kInner, 2 * kGroups, 8});
  refuse(".gate_up_proj_scales", {kExperts, kInner, 2 * kGroups});
  refuse(".gate_up_proj_bias", {kExperts * 2 * kInner});
  refuse(".gate_up_proj_bias", {2 * kInner, kExperts});
  TensorMap floats = published();
  floats[kScope + ".down_proj_blocks"] = float_tensor({1, 1, 1, 16}, std::vector<float>(16, 1.0F));
  expect_error(ErrorCode::kCorruptData, {kScope + ".down_proj_blocks"}, [&] { read(floats); });
  TensorMap alone = published();
  alone.erase(kScope + ".gate_up_proj_blocks");
  const TensorMap left = make_tensors(read(alone));
  EXPECT_TRUE(left.contains(kScope + ".gate_up_proj_scales")
  );  // Nobody's: a layer names what it lacks.
}

}  // namespace
}  // namespace saker::load::importers
