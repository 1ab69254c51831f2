// SPDX-License-Identifier: Apache-2.0
#include "saker/load/gguf/gguf_types.h"

#include "saker/base/tensor.h"
#include "saker/load/files/safetensors.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

namespace saker::load::gguf {
namespace {

struct Golden {
  TensorType type = TensorType::kQ40;
  std::string blocks;
  std::vector<float> floats;
};

std::vector<Golden> goldens() {
  const auto path =
      std::filesystem::path(SAKER_SOURCE_DIR) / "tests/golden/gguf/blocks.safetensors";
  const TensorMap tensors = read_safetensors(path);
  std::vector<Golden> result;
  for (const TensorType type :
       {TensorType::kQ40,
        TensorType::kQ41,
        TensorType::kQ50,
        TensorType::kQ51,
        TensorType::kQ80,
        TensorType::kQ4K,
        TensorType::kQ5K,
        TensorType::kQ6K}) {
    const std::string name(facts_of(type).name);
    const auto bytes = tensors.at(name + ".blocks").bytes();
    result.push_back(
        {type,
         std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()),
         to_floats(tensors.at(name + ".floats"))}
    );
  }
  return result;
}

const std::byte* bytes_of(const std::string& text) {
  return reinterpret_cast<const std::byte*>(text.data());
}

TEST(GgufTypesTest, BlocksHoldWhatGgmlSays) {
  for (const Golden& golden : goldens()) {
    std::vector<float> values(golden.floats.size());
    to_floats(golden.type, bytes_of(golden.blocks), values.size(), values.data());
    EXPECT_EQ(values, golden.floats) << facts_of(golden.type).name;
  }
}

TEST(GgufTypesTest, TheAffineLayoutHoldsTheSameWeights) {
  for (const Golden& golden : goldens()) {
    const auto layout = affine_layout(golden.type);
    ASSERT_EQ(layout.has_value(), golden.type != TensorType::kQ6K);
    if (!layout) {
      continue;
    }
    const std::size_t count = golden.floats.size();
    const auto bits = static_cast<std::size_t>(layout->format.bits);
    std::vector<std::byte> codes(count * bits / 8);
    std::vector<std::byte> scales(count / 32 * dtype_size(layout->scales));
    std::vector<std::byte> biases(scales.size());
    EXPECT_TRUE(fits_affine(golden.type, bytes_of(golden.blocks), count));
    to_affine(
        golden.type,
        bytes_of(golden.blocks),
        count,
        {.codes = codes.data(), .scales = scales.data(), .biases = biases.data()}
    );
    const kernels::QuantizeLoops& loops = kernels::quantize_loops();
    // Scales as float32, so that MLX's formula rounds as ggml's.
    std::vector<float> wide_scales(count / 32);
    std::vector<float> wide_biases(count / 32);
    loops.widen(scales.data(), layout->scales, count / 32, wide_scales.data());
    loops.widen(biases.data(), layout->scales, count / 32, wide_biases.data());
    std::vector<float> values(count);
    loops.decode(
        layout->format,
        DType::kFloat32,
        {.codes = codes.data(),
         .scales = reinterpret_cast<const std::byte*>(wide_scales.data()),
         .biases = reinterpret_cast<const std::byte*>(wide_biases.data()),
         .dtype = DType::kFloat32},
        count,
        values.data()
    );
    EXPECT_EQ(values, golden.floats) << facts_of(golden.type).name;
  }
}

TEST(GgufTypesTest, SeesScalesThatFloat16CannotHold) {
  std::string block(18, '\0');
  const auto set_scale = [&](unsigned bits) {
    block[0] = static_cast<char>(bits & 0xffU);
    block[1] = static_cast<char>(bits >> 8U);
  };
  set_scale(0x6fff);  // 8191 * 8 < 65504
  EXPECT_TRUE(fits_affine(TensorType::kQ40, bytes_of(block), 32));
  set_scale(0x7000);  // 8192 * 8
  EXPECT_FALSE(fits_affine(TensorType::kQ40, bytes_of(block), 32));
  set_scale(0x7c00);  // Infinity.
  EXPECT_FALSE(fits_affine(TensorType::kQ40, bytes_of(block), 32));
  set_scale(0x7e00);  // Not a number.
  EXPECT_FALSE(fits_affine(TensorType::kQ40, bytes_of(block), 32));
}

TEST(GgufTypesTest, NamesAllTypes) {
  EXPECT_EQ(type_name(14), "Q6_K");
  EXPECT_EQ(type_name(30), "BF16");
  EXPECT_EQ(type_name(39), "MXFP4");
  EXPECT_EQ(type_name(99), "type 99");
  EXPECT_EQ(find_type(10), nullptr);
}

}  // namespace
}  // namespace saker::load::gguf
