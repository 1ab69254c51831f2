// SPDX-License-Identifier: Apache-2.0
#include "saker/load/gguf/blocks/gguf_types.h"

#include "saker/base/tensor.h"
#include "saker/kernels/layout/block_format.h"
#include "saker/kernels/packing/codes.h"
#include "saker/kernels/packing/pack.h"
#include "saker/load/files/safetensors.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <limits>
#include <memory>
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
  using enum TensorType;
  for (const TensorType type :
       {kQ2K,
        kQ3K,
        kIq4Nl,
        kIq4Xs,
        kIq3Xxs,
        kIq3S,
        kIq2Xxs,
        kIq2Xs,
        kIq2S,
        kIq1S,
        kIq1M,
        kTq10,
        kTq20,
        kMxfp4,
        kNvfp4,
        TensorType::kQ40,
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
  int layouts = 0;
  for (const Golden& golden : goldens()) {
    const auto layout = affine_layout(golden.type);
    if (!layout) {
      continue;
    }
    ++layouts;
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
  EXPECT_EQ(layouts, 14);
}

TensorType type_of(kernels::BlockKind kind) {
  switch (kind) {
    case kernels::BlockKind::kQ40:
      return TensorType::kQ40;
    default:
      return TensorType::kQ6K;
  }
}

// Weights that products read as the file has them.
TEST(GgufTypesTest, OwnBlocksArePackedAsTheyAre) {
  int types = 0;
  for (const Golden& golden : goldens()) {
    if (!has_own_blocks(golden.type)) {
      continue;
    }
    ++types;
    const kernels::WeightFormat format = kernels::weight_format(*block_kind(golden.type));
    const auto columns = static_cast<std::int64_t>(golden.floats.size());
    kernels::WeightTensors row;
    row.weight = Tensor{
        .dtype = DType::kUInt8,
        .shape = {1, kernels::stored_elements(format, columns)},
        .data = std::shared_ptr<const std::byte>(std::shared_ptr<void>(), bytes_of(golden.blocks)),
        .release = {},
    };
    ASSERT_EQ(row.weight.nbytes(), golden.blocks.size());
    kernels::PackedMatrix matrix = kernels::packed_layout(
        1,
        static_cast<int>(columns),
        format,
        DType::kUInt8,
        {.small_floats = kernels::PackedOrder::kInterleavedNr16,
         .bf16 = kernels::PackedOrder::kInterleavedNr16}
    );
    EXPECT_EQ(matrix.block_bytes(), kernels::kBlockRows * golden.blocks.size());
    std::vector<std::byte> bytes(matrix.block_bytes());
    kernels::pack_rows({row}, format, matrix, bytes.data());
    matrix.data = bytes.data();
    std::vector<float> values(golden.floats.size());
    kernels::unpack_row(matrix, 0, values.data());
    EXPECT_EQ(values, golden.floats) << facts_of(golden.type).name;
  }
  EXPECT_EQ(types, 12);
}

TEST(GgufTypesTest, OtherBlocksHoldTheSameWeights) {
  int types = 0;
  for (const Golden& golden : goldens()) {
    const auto kind = block_kind(golden.type);
    if (!kind || has_own_blocks(golden.type)) {
      continue;
    }
    ++types;
    const std::size_t count = golden.floats.size();
    const TypeFacts& facts = facts_of(type_of(*kind));
    std::vector<std::byte> blocks(
        count / static_cast<std::size_t>(facts.block) * facts.block_bytes
    );
    to_blocks(golden.type, bytes_of(golden.blocks), count, blocks.data());
    std::vector<float> values(count);
    to_floats(facts.type, blocks.data(), count, values.data());
    EXPECT_EQ(values, golden.floats) << facts_of(golden.type).name;
  }
  EXPECT_EQ(types, 3);
}

TEST(GgufTypesTest, SmallFloatsHoldTheSameWeights) {
  constexpr float kMagnitudes[] = {0.0F, 0.5F, 1.0F, 1.5F, 2.0F, 3.0F, 4.0F, 6.0F};
  int types = 0;
  for (const Golden& golden : goldens()) {
    const auto format = small_float_format(golden.type);
    if (!format) {
      continue;
    }
    ++types;
    const std::size_t count = golden.floats.size();
    const auto group = static_cast<std::size_t>(format->group_size);
    std::vector<std::byte> codes(count / 2);
    std::vector<std::byte> scales(count / group);
    ASSERT_TRUE(fits_small_floats(golden.type, bytes_of(golden.blocks), count));
    to_small_floats(golden.type, bytes_of(golden.blocks), count, codes.data(), scales.data());
    for (std::size_t i = 0; i < count; ++i) {
      const unsigned code = std::to_integer<unsigned>(codes[i / 2]) >> i % 2 * 4 & 15U;
      const float value = (code & 8U) != 0 ? -kMagnitudes[code & 7U] : kMagnitudes[code];
      EXPECT_EQ(value * kernels::group_scale(*format, nullptr, scales[i / group]), golden.floats[i])
          << facts_of(golden.type).name << ' ' << i;
    }
  }
  EXPECT_EQ(types, 2);
}

TEST(GgufTypesTest, SeesScalesThatAreNoNumbers) {
  std::string mxfp4(17, '\1');
  EXPECT_TRUE(fits_small_floats(TensorType::kMxfp4, bytes_of(mxfp4), 32));
  mxfp4[0] = '\xff';
  EXPECT_FALSE(fits_small_floats(TensorType::kMxfp4, bytes_of(mxfp4), 32));
  std::string nvfp4(36, '\1');
  EXPECT_TRUE(fits_small_floats(TensorType::kNvfp4, bytes_of(nvfp4), 64));
  nvfp4[3] = '\x7f';
  EXPECT_FALSE(fits_small_floats(TensorType::kNvfp4, bytes_of(nvfp4), 64));
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
  EXPECT_EQ(find_type(9), nullptr);
}

}  // namespace
}  // namespace saker::load::gguf
