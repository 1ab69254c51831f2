// SPDX-License-Identifier: Apache-2.0
// What decides where a tool's configuration and its tensors say different things.
#include "saker/load/importers/quantized_folder.h"

#include "saker/base/error.h"
#include "saker/base/tensor.h"
#include "saker/load/files/quantization.h"

#include "tests/nn/random_weights.h"
#include "tests/support/expect_error.h"
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace saker::load::importers {
namespace {

using nn::float_tensor;
using nn::make_tensor;
using testing::expect_error;

constexpr std::int64_t kOutputs = 8;
constexpr std::int64_t kInputs = 64;

template <typename T>
Tensor filled(DType dtype, std::vector<std::int64_t> shape, T value) {
  std::size_t count = 1;
  for (const std::int64_t size : shape) {
    count *= static_cast<std::size_t>(size);
  }
  return make_tensor(dtype, std::move(shape), std::vector<T>(count, value));
}

ImportedModel read(const Json& section, const TensorMap& tensors) {
  return read_quantized({{"quantization_config", section}}, tensors).value();
}

// A module's biases over its scales, the first of its rows.
float zero_of(const ImportedModel& model, const std::string& path) {
  const TensorMap tensors = make_tensors(model);
  const float scale = to_floats(tensors.at(path + ".scales")).front();
  return -to_floats(tensors.at(path + ".biases")).front() / scale;
}

// Module `path` of GPTQ with one group of 64; `zeros`: its word of eight stored zeros, or none.
void add_gptq(TensorMap& tensors, const std::string& path, std::optional<std::uint32_t> zeros) {
  tensors[path + ".qweight"] = filled(DType::kInt32, {kInputs / 8, kOutputs}, 0x12345678U);
  tensors[path + ".scales"] = filled(DType::kFloat32, {1, kOutputs}, 0.5F);
  if (zeros) {
    tensors[path + ".qzeros"] = filled(DType::kInt32, {1, 1}, *zeros);
  }
}

TEST(QuantizedFolder, StoredZerosOfGptqDecideWhichVersionTheyAreOf) {
  constexpr std::uint32_t kSevens = 0x77777777U;
  constexpr std::uint32_t kEights = 0x88888888U;
  constexpr std::uint32_t kMixed = 0x12345673U;  // The first one is 3.

  struct Case {
    std::string label;
    bool sym;
    std::uint32_t zeros;
    float expected;
    bool noted;
  };

  for (const Case& test : std::vector<Case>{
           {"gptq", true, kSevens, 8, false},
           {"gptq_v2", true, kEights, 8, false},
           {"gptq", true, kEights, 8, true},
           {"gptq_v2", true, kSevens, 8, true},
           {"gptq", false, kEights, 8, true},
           {"gptq", false, kMixed, 4, false},
           {"gptq_v2", false, kMixed, 3, false},
           {"gptq", true, kMixed, 4, true},
       }) {
    TensorMap tensors;
    add_gptq(tensors, "a", test.zeros);
    const Json section = {
        {"quant_method", "gptq"}, {"checkpoint_format", test.label}, {"sym", test.sym}
    };
    SCOPED_TRACE(section.dump());
    const ImportedModel model = read(section, tensors);
    EXPECT_EQ(zero_of(model, "a"), test.expected);
    EXPECT_EQ(model.notes.size(), test.noted ? 1U : 0U);
  }
  // One module whose zeros are all alike says nothing about others.
  TensorMap tensors;
  add_gptq(tensors, "a", kEights);
  add_gptq(tensors, "b", kMixed);
  EXPECT_EQ(zero_of(read({{"quant_method", "gptq"}, {"sym", false}}, tensors), "a"), 9.0F);
  EXPECT_EQ(zero_of(read({{"quant_method", "gptq"}, {"sym", true}}, tensors), "a"), 8.0F);
}

// Codes of 0, 1, 2... in each input's order; `zeros`: those of the outputs in the first version.
TensorMap counted_gptq(std::uint32_t bits, const std::vector<std::uint32_t>& zeros) {
  const std::uint32_t pack = 32 / bits;
  const std::uint32_t mask = (1U << bits) - 1;
  std::vector<std::uint32_t> words(kInputs / pack * zeros.size());
  std::vector<std::uint32_t> zero_words(zeros.size() / pack);
  for (std::uint32_t input = 0; input < kInputs; ++input) {
    for (std::uint32_t output = 0; output < zeros.size(); ++output) {
      words[input / pack * zeros.size() + output] |= ((input + output) & mask)
                                                     << bits * (input % pack);
    }
  }
  for (std::uint32_t output = 0; output < zeros.size(); ++output) {
    zero_words[output / pack] |= zeros[output] << bits * (output % pack);
  }
  const auto outputs = static_cast<std::int64_t>(zeros.size());
  TensorMap tensors;
  tensors["a.qweight"] = make_tensor(DType::kInt32, {kInputs / std::int64_t{pack}, outputs}, words);
  tensors["a.qzeros"] = make_tensor(DType::kInt32, {1, outputs / std::int64_t{pack}}, zero_words);
  tensors["a.scales"] = filled(DType::kFloat32, {1, outputs}, 0.5F);
  return tensors;
}

TEST(QuantizedFolder, CodesOfGptqMayHaveOtherBits) {
  for (const std::uint32_t bits : {2U, 4U, 8U}) {
    SCOPED_TRACE(bits);
    std::vector<std::uint32_t> zeros(16);
    for (std::uint32_t output = 0; output < 16; ++output) {
      zeros[output] = output % 3;
    }
    // What the configuration says is not asked where zeros tell the bits.
    const Json section = {{"quant_method", "gptq"}, {"bits", 4}, {"sym", false}};
    const ImportedModel model = read(section, counted_gptq(bits, zeros));
    EXPECT_EQ(parse_quantization(model.config).format->bits, static_cast<int>(bits));
    const TensorMap tensors = make_tensors(model);
    const auto biases = to_floats(tensors.at("a.biases"));
    const Tensor& codes = tensors.at("a.weight");
    const std::uint32_t pack = 32 / bits;
    ASSERT_EQ(codes.shape, (std::vector<std::int64_t>{16, kInputs / std::int64_t{pack}}));
    for (std::uint32_t output = 0; output < 16; ++output) {
      EXPECT_EQ(biases[output], -0.5F * static_cast<float>(output % 3 + 1));
      for (std::uint32_t input = 0; input < kInputs; ++input) {
        std::uint32_t word = 0;
        std::memcpy(
            &word, codes.data.get() + 4 * ((output * kInputs + input) / pack), sizeof(word)
        );
        const std::uint32_t mask = (1U << bits) - 1;
        ASSERT_EQ(word >> bits * (input % pack) & mask, (input + output) & mask);
      }
    }
  }
}

TEST(QuantizedFolder, SymmetricCodesOfGptqHaveTheirOwnMiddle) {
  for (const std::uint32_t bits : {2U, 4U, 8U}) {
    const std::uint32_t middle = 1U << (bits - 1);
    const std::vector<std::uint32_t> zeros(
        16, middle
    );  // Of the second version, labelled the first.
    const ImportedModel model =
        read({{"quant_method", "gptq"}, {"sym", true}}, counted_gptq(bits, zeros));
    EXPECT_EQ(zero_of(model, "a"), static_cast<float>(middle));
    EXPECT_EQ(model.notes.size(), 1U);
  }
}

TEST(QuantizedFolder, ZerosThatAreDeclaredMustBeThere) {
  TensorMap gptq;
  add_gptq(gptq, "a", std::nullopt);
  expect_error(ErrorCode::kCorruptData, {"'a.qzeros' is missing"}, [&] {
    read({{"quant_method", "gptq"}, {"sym", false}}, gptq);
  });
  expect_error(ErrorCode::kCorruptData, {"'a.qzeros' is missing"}, [&] {
    read({{"quant_method", "awq"}, {"zero_point", true}}, gptq);
  });
  const ImportedModel model = read({{"quant_method", "gptq"}, {"sym", true}}, gptq);
  EXPECT_EQ(zero_of(model, "a"), 8.0F);
  // Nothing tells the bits but the configuration, so that no other ones may be inferred.
  EXPECT_EQ(parse_quantization(model.config).overrides.at("a")->bits, 4);
}

Json compressed(std::string_view format, const std::vector<Json>& groups) {
  Json section = {{"quant_method", "compressed-tensors"}, {"format", format}};
  section["config_groups"] = Json::object();
  for (const Json& group : groups) {
    section["config_groups"][std::to_string(section["config_groups"].size())]["weights"] = group;
  }
  return section;
}

// 16 words a row, with so many scales.
TensorMap packed(std::int64_t scales) {
  TensorMap tensors;
  tensors["a.weight_packed"] = filled(DType::kInt32, {kOutputs, 16}, 0x12345678U);
  tensors["a.weight_scale"] = filled(DType::kFloat32, {kOutputs, scales}, 0.5F);
  return tensors;
}

TEST(QuantizedFolder, WithoutAShapeBitsAreThoseDeclared) {
  const auto bits_of = [](const std::vector<Json>& groups, std::int64_t scales) {
    const ImportedModel model = read(compressed("pack-quantized", groups), packed(scales));
    const auto format = parse_quantization(model.config).overrides.at("a");
    EXPECT_EQ(zero_of(model, "a"), format->bits == 8 ? 128.0F : 8.0F);
    return format->bits;
  };
  EXPECT_EQ(bits_of({{{"num_bits", 8}, {"strategy", "channel"}}}, 1), 8);
  EXPECT_EQ(bits_of({{{"num_bits", 4}, {"strategy", "channel"}}}, 1), 4);
  EXPECT_EQ(bits_of({{{"num_bits", 4}, {"group_size", 32}}}, 4), 4);
  // Of two groups the one whose scales are as many.
  const std::vector<Json> two = {
      {{"num_bits", 4}, {"group_size", 32}}, {{"num_bits", 8}, {"group_size", 32}}
  };
  EXPECT_EQ(bits_of(two, 2), 8);
  EXPECT_EQ(bits_of(two, 4), 4);
  const auto refused = [](const std::vector<Json>& groups, std::int64_t scales) {
    expect_error(ErrorCode::kCorruptData, {"'a.weight_packed'", "weight_shape"}, [&] {
      read(compressed("pack-quantized", groups), packed(scales));
    });
  };
  refused({}, 1);
  refused(two, 1);
  refused({{{"num_bits", 4}}, {{"num_bits", 8}}}, 1);
  refused({{{"num_bits", 4}, {"group_size", 32}}}, 2);
}

TEST(QuantizedFolder, ZeroPointsOfCompressedTensors) {
  const auto section = [](bool symmetric) {
    return compressed(
        "pack-quantized", {{{"num_bits", 4}, {"group_size", 32}, {"symmetric", symmetric}}}
    );
  };
  TensorMap tensors = packed(4);
  expect_error(ErrorCode::kCorruptData, {"'a.weight_zero_point' is missing"}, [&] {
    read(section(false), tensors);
  });
  EXPECT_EQ(zero_of(read(section(true), tensors), "a"), 8.0F);
  // Stored ones count, packed or as bytes from the middle.
  tensors["a.weight_zero_point"] = filled(DType::kInt32, {1, 4}, 0x55555555U);
  EXPECT_EQ(zero_of(read(section(true), tensors), "a"), 5.0F);
  tensors["a.weight_zero_point"] = filled(DType::kInt8, {kOutputs, 4}, std::int8_t{-2});
  EXPECT_EQ(zero_of(read(section(false), tensors), "a"), 6.0F);
  tensors["a.weight_zero_point"] = filled(DType::kInt8, {kOutputs, 3}, std::int8_t{0});
  expect_error(ErrorCode::kCorruptData, {"weight_zero_point", "[8, 4]"}, [&] {
    read(section(false), tensors);
  });
  TensorMap bytes;
  bytes["a.weight"] = filled(DType::kInt8, {kOutputs, kInputs}, std::int8_t{3});
  bytes["a.weight_scale"] = filled(DType::kFloat32, {kOutputs}, 0.5F);
  EXPECT_EQ(zero_of(read(compressed("int-quantized", {{{"num_bits", 8}}}), bytes), "a"), 128.0F);
  expect_error(ErrorCode::kCorruptData, {"'a.weight_zero_point' is missing"}, [&] {
    read(compressed("int-quantized", {{{"num_bits", 8}, {"symmetric", false}}}), bytes);
  });
}

TEST(QuantizedFolder, GroupsOfMinusOneMeanNone) {
  const Json section = compressed("pack-quantized", {{{"num_bits", 4}, {"group_size", 32}}});
  TensorMap tensors = packed(4);
  tensors["a.weight_g_idx"] = filled(DType::kInt32, {128}, std::int32_t{-1});
  EXPECT_EQ(read(section, tensors).tensors.size(), 1U);
  std::vector<std::int32_t> groups(128, -1);
  groups.back() = 3;
  tensors["a.weight_g_idx"] = make_tensor(DType::kInt32, {128}, groups);
  expect_error(ErrorCode::kUnsupported, {"weight_g_idx", "act-order"}, [&] {
    read(section, tensors);
  });
}

TEST(QuantizedFolder, BlocksOfFloatsAreThoseDeclared) {
  TensorMap tensors;
  tensors["a.weight"] = filled(DType::kFloat8E4M3, {64, 64}, std::uint8_t{0x38});  // One.
  std::vector<float> scales = {1, 2, 3, 4};
  tensors["a.weight_scale"] = float_tensor({2, 2}, scales);
  const auto values = [&](const std::vector<Json>& groups) {
    const auto made = make_tensors(read(compressed("float-quantized", groups), tensors));
    return to_floats(made.at("a.weight"));
  };
  const auto weights = values({{{"num_bits", 8}, {"block_structure", {32, 32}}}});
  EXPECT_EQ(weights[31], 1.0F);
  EXPECT_EQ(weights[32], 2.0F);
  EXPECT_EQ(weights[32 * 64], 3.0F);
  // Another group of modules may have others.
  EXPECT_EQ(values({{{"block_structure", {128, 128}}}, {{"block_structure", {32, 32}}}})[32], 2.0F);
  for (const std::vector<Json>& groups :
       {std::vector<Json>{}, std::vector<Json>{{{"block_structure", {16, 16}}}}}) {
    expect_error(ErrorCode::kCorruptData, {"a.weight_scale", "[2, 2]"}, [&] { values(groups); });
  }
  expect_error(ErrorCode::kCorruptData, {"block_structure"}, [&] {
    values({{{"block_structure", {0, 32}}}});
  });
}

TEST(QuantizedFolder, AGlobalScaleMayHaveNoDimension) {
  for (const std::vector<std::int64_t>& shape :
       {std::vector<std::int64_t>{}, std::vector<std::int64_t>{1}, std::vector<std::int64_t>{1, 1}
       }) {
    TensorMap tensors;
    tensors["a.weight_packed"] = filled(DType::kUInt8, {kOutputs, 8}, std::uint8_t{0x22});
    tensors["a.weight_scale"] = filled(DType::kFloat8E4M3, {kOutputs, 1}, std::uint8_t{0x38});
    tensors["a.weight_global_scale"] = float_tensor(shape, {4.0F});
    const auto made = make_tensors(read(compressed("nvfp4-pack-quantized", {}), tensors));
    EXPECT_EQ(to_floats(made.at("a.weight")).front(), 0.25F);
  }
}

}  // namespace
}  // namespace saker::load::importers
