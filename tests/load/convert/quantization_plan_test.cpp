// SPDX-License-Identifier: Apache-2.0
#include "saker/load/convert/quantization_plan.h"

#include "saker/base/error.h"
#include "saker/base/json/json.h"

#include "tests/support/expect_error.h"
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace saker::load {
namespace {

using kernels::WeightFormat;
using kernels::WeightKind;
using testing::expect_error;

const Json kLlama = {{"model_type", "llama"}};

WeightFormat affine(int bits, int group_size = 64) {
  return {.kind = WeightKind::kAffine, .bits = bits, .group_size = group_size};
}

std::vector<WeightShape> modules_of(int layers) {
  std::vector<WeightShape> modules = {{"model.embed_tokens", 128}, {"lm_head", 128}};
  for (int layer = 0; layer < layers; ++layer) {
    for (const char* name : {"self_attn.q_proj", "self_attn.v_proj", "mlp.down_proj"}) {
      modules.push_back({fmt::format("model.layers.{}.{}", layer, name), 128});
    }
  }
  return modules;
}

QuantizationPlan plan(const QuantizeOptions& options, const std::vector<WeightShape>& modules) {
  return plan_quantization(options, kLlama, modules);
}

TEST(QuantizationPlanTest, FormatsHaveTheDefaultsOfTheirMode) {
  EXPECT_EQ(quantized_format("affine", 0, 0), affine(4));
  EXPECT_EQ(quantized_format("affine", 3, 128), affine(3, 128));
  EXPECT_EQ(quantized_format("mxfp4", 0, 0), (WeightFormat{WeightKind::kMxfp4, 4, 32}));
  EXPECT_EQ(quantized_format("nvfp4", 4, 16), (WeightFormat{WeightKind::kNvfp4, 4, 16}));
  EXPECT_EQ(quantized_format("mxfp8", 0, 0), (WeightFormat{WeightKind::kMxfp8, 8, 32}));
  expect_error(ErrorCode::kInvalidArgument, {"7 bits", "2, 3, 4, 5, 6 or 8"}, [] {
    quantized_format("affine", 7, 0);
  });
  expect_error(ErrorCode::kInvalidArgument, {"group size 32", "expected 16"}, [] {
    quantized_format("nvfp4", 0, 32);
  });
  expect_error(ErrorCode::kInvalidArgument, {"'int4'", "affine"}, [] {
    quantized_format("int4", 0, 0);
  });
}

TEST(QuantizationPlanTest, RulesAreParsed) {
  EXPECT_EQ(parse_rule("*.o_proj=6").format, affine(6));
  EXPECT_EQ(parse_rule("a=b=6:32").pattern, "a=b");
  EXPECT_EQ(parse_rule("a=6:32").format, affine(6, 32));
  EXPECT_EQ(parse_rule("a=8::mxfp8").format, (WeightFormat{WeightKind::kMxfp8, 8, 32}));
  EXPECT_EQ(parse_rule("lm_head=float").format, std::nullopt);
  for (const char* wrong :
       {"",
        "a",
        "=4",
        "a=",
        "a=x",
        "a=4:x",
        "a=4:64:affine:1",
        "a=-4",
        "a=9",
        "a=4:16",
        "a=99999999999"}) {
    expect_error(ErrorCode::kInvalidArgument, {}, [&] { parse_rule(wrong); });
  }
}

TEST(QuantizeOptions, SayWhatIsChosen) {
  EXPECT_FALSE(quantize_options({}).has_value());
  EXPECT_EQ(quantize_options({.bits = 8}).value().format, affine(8));
  EXPECT_EQ(quantize_options({.recipe = "mixed_3_6"}).value().recipe, "mixed_3_6");
  const auto by_rule = quantize_options({.mode = "mxfp4", .rules = {"*.down_proj=float"}}).value();
  EXPECT_EQ(by_rule.format, (WeightFormat{WeightKind::kMxfp4, 4, 32}));
  EXPECT_EQ(by_rule.rules.at(0).pattern, "*.down_proj");
}

TEST(QuantizationPlanTest, OneFormatNeedsNoEntries) {
  auto modules = modules_of(2);
  modules.push_back({"model.odd", 96});
  const auto result = plan({.format = affine(4), .recipe = {}, .rules = {}}, modules);
  EXPECT_EQ(result.formats.size(), modules.size() - 1);
  EXPECT_FALSE(result.formats.contains("model.odd"));
  const Json section = {{"group_size", 64}, {"bits", 4}, {"mode", "affine"}};
  EXPECT_EQ(result.section, section);
}

TEST(QuantizationPlanTest, TheFirstRuleThatMatchesCounts) {
  const auto result = plan(
      {.format = affine(4),
       .recipe = "mixed_3_6",
       .rules = {parse_rule("lm_head=float"), parse_rule("*.1.*=2"), parse_rule("*q_proj=8:32")}},
      modules_of(2)
  );
  EXPECT_FALSE(result.formats.contains("lm_head"));
  EXPECT_EQ(result.formats.at("model.layers.1.self_attn.q_proj"), affine(2));
  EXPECT_EQ(result.formats.at("model.layers.0.self_attn.q_proj"), affine(8, 32));
  EXPECT_EQ(result.formats.at("model.embed_tokens"), affine(3));
  const Json entry = {{"group_size", 32}, {"bits", 8}, {"mode", "affine"}};
  EXPECT_EQ(result.section.at("model.layers.0.self_attn.q_proj"), entry);
  EXPECT_FALSE(result.section.contains("lm_head"));
}

// Of 16 layers the first and last two, and every third one between, have more bits.
TEST(QuantizationPlanTest, RecipesGiveMoreBitsWhereMlxLmDoes) {
  const auto result =
      plan({.format = affine(4), .recipe = "mixed_2_6", .rules = {}}, modules_of(16));
  EXPECT_EQ(result.formats.at("lm_head"), affine(6));
  std::vector<int> more;
  for (int layer = 0; layer < 16; ++layer) {
    const auto name = fmt::format("model.layers.{}.", layer);
    EXPECT_EQ(result.formats.at(name + "self_attn.q_proj"), affine(2));
    EXPECT_EQ(
        result.formats.at(name + "self_attn.v_proj"), result.formats.at(name + "mlp.down_proj")
    );
    if (result.formats.at(name + "mlp.down_proj").bits == 6) {
      more.push_back(layer);
    }
  }
  EXPECT_EQ(more, (std::vector<int>{0, 1, 4, 7, 10, 13, 14, 15}));
}

TEST(QuantizationPlanTest, RoutersKeepEightBits) {
  const Json config = {{"model_type", "qwen3_moe"}};
  const std::vector<WeightShape> modules = {{"model.layers.0.mlp.gate", 128}, {"lm_head", 128}};
  const auto result =
      plan_quantization({.format = affine(4), .recipe = {}, .rules = {}}, config, modules);
  EXPECT_EQ(result.formats.at("model.layers.0.mlp.gate"), affine(8));
  const Json entry = {{"group_size", 64}, {"bits", 8}};
  EXPECT_EQ(result.section.at("model.layers.0.mlp.gate"), entry);
  EXPECT_EQ(plan({.format = affine(4), .recipe = {}, .rules = {}}, modules).section.size(), 3U);
}

TEST(QuantizationPlanTest, RefusesWhatDoesNotFit) {
  const auto modules = modules_of(1);
  const auto fails = [&](const QuantizeOptions& options, const char* says) {
    expect_error(ErrorCode::kInvalidArgument, {says}, [&] { plan(options, modules); });
  };
  fails({.format = affine(4), .recipe = "mixed_9", .rules = {}}, "mixed_9");
  fails(
      {.format = quantized_format("mxfp4", 0, 0), .recipe = "mixed_2_6", .rules = {}},
      "expected affine"
  );
  fails({.format = affine(4), .recipe = {}, .rules = {parse_rule("x*=4")}}, "matches none");
  expect_error(ErrorCode::kInvalidArgument, {"'odd' has 96 columns"}, [] {
    plan({.format = affine(4), .recipe = {}, .rules = {parse_rule("odd=4")}}, {{"odd", 96}});
  });
  expect_error(ErrorCode::kInvalidArgument, {"down_proj"}, [] {
    plan({.format = affine(4), .recipe = "mixed_2_6", .rules = {}}, {{"lm_head", 128}});
  });
}

}  // namespace
}  // namespace saker::load
