// SPDX-License-Identifier: Apache-2.0
// Configurations of models with latent attention.
#include "saker/models/architecture.h"
#include "saker/models/decoder_config.h"

#include "tests/models/changed_config.h"
#include "tests/support/expect_error.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace saker::models {
namespace {

using ::testing::ElementsAre;
using testing::expect_error;

const std::vector<std::string_view> kTypes{
    "deepseek_v2", "deepseek_v3", "kimi_k2", "kimi_k25", "glm4_moe_lite", "mistral4"
};

DecoderConfig config_of(std::string_view type, const Json& changes) {
  const auto config = config_with(type, changes);
  if (type == "deepseek_v2") {
    return deepseek_v2().read(config);
  }
  if (type == "mistral4") {
    return mistral4().read(config);
  }
  return type == "glm4_moe_lite" ? glm4_moe_lite().read(config) : deepseek_v3().read(config);
}

void expect_refused(ErrorCode code, const std::string& key, const Json& value) {
  for (const auto type : kTypes) {
    expect_error(code, {key}, [&] { check_config(config_with(type, {{key, value}})); });
  }
}

std::vector<bool> expert_layers(const DecoderConfig& config) {
  std::vector<bool> result;
  result.reserve(config.layers.size());
  for (const auto& layer : config.layers) {
    result.push_back(layer.experts);
  }
  return result;
}

TEST(LatentConfig, CachesHaveOneRowWhoseValuesAreInTheKeys) {
  const auto config = config_of("deepseek_v3", Json::object());
  const auto shape = config.kv_shape(config.layers.front(), 16, mx::bfloat16);
  EXPECT_EQ(shape.kv_heads, 1);
  EXPECT_EQ(shape.head_dim, 24 + 4);
  EXPECT_EQ(shape.value_head_dim, 24);
  EXPECT_TRUE(shape.values_in_keys);
  EXPECT_EQ(kernels::kv_row_bytes(shape), 56U);
  EXPECT_EQ(config.kv_shape(config.layers.front(), 32, mx::bfloat16).dtype, mx::float32);
}

TEST(LatentConfig, RowsOfFewerBitsAreRefused) {
  for (const int bits : {8, 4}) {
    expect_error(ErrorCode::kUnsupported, {std::to_string(bits), "16"}, [&] {
      const auto config = config_of("deepseek_v3", Json::object());
      kernels::kv_row_bytes(config.kv_shape(config.layers.front(), bits, mx::bfloat16));
    });
  }
}

TEST(LatentConfig, QueriesMayHaveNoLatent) {
  for (const auto type : kTypes) {
    EXPECT_EQ(config_of(type, {{"q_lora_rank", nullptr}}).latent->query_rank, 0) << type;
    EXPECT_EQ(config_of(type, {{"q_lora_rank", 11}}).latent->query_rank, 11) << type;
  }
}

TEST(LatentConfig, YarnScalesScores) {
  const Json yarn{
      {"type", "yarn"},
      {"factor", 40.0},
      {"original_max_position_embeddings", 64},
      {"mscale", 1.0},
      {"mscale_all_dim", 1.0},
  };
  const auto plain = config_of("deepseek_v3", Json::object());
  const auto scaled = config_of("deepseek_v3", {{"rope_scaling", yarn}});
  const double factor = 0.1 * std::log(40.0) + 1.0;
  EXPECT_NEAR(plain.latent->attend.scale, 1.0 / std::sqrt(12.0), 1e-7);
  EXPECT_NEAR(scaled.latent->attend.scale, factor * factor / std::sqrt(12.0), 1e-6);
  EXPECT_EQ(scaled.ropes.front().attention_factor, 1.0);
  EXPECT_EQ(scaled.ropes.front().pairs, kernels::RopePairs::kNeighbours);
  const auto halves = config_of("deepseek_v3", {{"rope_interleave", false}});
  EXPECT_EQ(halves.ropes.front().pairs, kernels::RopePairs::kHalves);
}

TEST(LatentConfig, LatentsHaveAnEpsilonOfTheirOwnInDeepSeek) {
  const Json eps{{"rms_norm_eps", 1e-3}};
  EXPECT_FLOAT_EQ(config_of("deepseek_v2", eps).latent->norm.eps, 1e-6F);
  EXPECT_FLOAT_EQ(config_of("deepseek_v3", eps).latent->norm.eps, 1e-6F);
  EXPECT_FLOAT_EQ(config_of("glm4_moe_lite", eps).latent->norm.eps, 1e-3F);
}

TEST(LatentConfig, ExpertsFollowDenseLayers) {
  const auto layers = [](const Json& changes) {
    return expert_layers(config_of("deepseek_v3", changes));
  };
  EXPECT_THAT(layers(Json::object()), ElementsAre(false, true, true, true));
  EXPECT_THAT(layers({{"moe_layer_freq", 2}}), ElementsAre(false, false, true, false));
  EXPECT_THAT(layers({{"n_routed_experts", nullptr}}), ElementsAre(false, false, false, false));
  const Json types{"sparse", "dense", "dense", "sparse"};
  EXPECT_THAT(
      expert_layers(config_of("glm4_moe_lite", {{"mlp_layer_types", types}})),
      ElementsAre(true, false, false, true)
  );
  expect_refused(ErrorCode::kCorruptData, "mlp_layer_types", Json::array({"dense"}));
  expect_refused(ErrorCode::kUnsupported, "mlp_layer_types", {"dense", "dense", "dense", "thick"});
}

TEST(LatentConfig, RoutersFollowTheirVersion) {
  const Json groups{{"n_routed_experts", 8}, {"n_group", 4}, {"topk_group", 2}};
  const auto third = config_of("deepseek_v3", groups).moe;
  EXPECT_EQ(third.routing.score, kernels::RouterScore::kSigmoid);
  EXPECT_EQ(third.routing.group_score, kernels::GroupScore::kLargestTwo);
  EXPECT_EQ(third.routing.groups, 4);
  EXPECT_EQ(third.routing.kept_groups, 2);
  EXPECT_TRUE(third.routing.normalized);
  EXPECT_EQ(third.shared.intermediate, third.intermediate);
  EXPECT_EQ(config_of("deepseek_v2", groups).moe.routing.groups, 1);
  Json limited = groups;
  limited["topk_method"] = "group_limited_greedy";
  const auto second = config_of("deepseek_v2", limited).moe;
  EXPECT_EQ(second.routing.score, kernels::RouterScore::kSoftmax);
  EXPECT_EQ(second.routing.group_score, kernels::GroupScore::kLargest);
  EXPECT_EQ(second.routing.groups, 4);
  EXPECT_FALSE(second.routing.normalized);
}

TEST(LatentConfig, MistralsQueriesAreScaledByPosition) {
  const auto config = config_of("mistral4", Json::object());
  EXPECT_EQ(config.latent->query_scaling.beta, 0.5);
  EXPECT_EQ(config.latent->query_scaling.period, 16);
  EXPECT_EQ(config.moe.routing.score, kernels::RouterScore::kSoftmax);
  EXPECT_TRUE(config.moe.routing.normalized);
}

TEST(LatentConfig, Mistral3sTextMayHaveLatents) {
  const Json whole{{"model_type", "mistral3"}, {"text_config", small_config("mistral4")}};
  EXPECT_TRUE(ministral3().read(whole).latent.has_value());
  const Json plain{{"model_type", "mistral3"}, {"text_config", small_config("ministral3")}};
  EXPECT_FALSE(ministral3().read(plain).latent.has_value());
}

TEST(LatentConfig, BadValuesAreNamed) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const auto* key :
       {"kv_lora_rank",
        "q_lora_rank",
        "qk_nope_head_dim",
        "qk_rope_head_dim",
        "v_head_dim",
        "n_routed_experts",
        "num_experts_per_tok",
        "moe_intermediate_size",
        "moe_layer_freq"}) {
    for (const Json& value : {Json(0), Json(-1), Json(1.5), Json("many"), Json(1e300), Json(nan)}) {
      expect_refused(ErrorCode::kCorruptData, key, value);
    }
  }
  for (const Json& value : {Json(-1), Json(1.5), Json("many"), Json(1 << 30)}) {
    expect_refused(ErrorCode::kCorruptData, "n_shared_experts", value);
  }
  expect_refused(ErrorCode::kCorruptData, "first_k_dense_replace", -1);
  expect_refused(ErrorCode::kUnsupported, "qk_rope_head_dim", 3);
  expect_refused(ErrorCode::kCorruptData, "num_experts_per_tok", 5);
  expect_refused(ErrorCode::kCorruptData, "routed_scaling_factor", 0.0);
  expect_refused(ErrorCode::kCorruptData, "routed_scaling_factor", nan);
  expect_refused(ErrorCode::kCorruptData, "rope_interleave", "yes");
  for (const std::string key : {"scoring_func", "topk_method"}) {
    for (const auto* type : {"deepseek_v2", "deepseek_v3", "glm4_moe_lite"}) {
      expect_error(ErrorCode::kUnsupported, {key, "other"}, [&] {
        check_config(config_with(type, {{key, "other"}}));
      });
    }
  }
  expect_error(ErrorCode::kUnsupported, {"norm_topk_prob"}, [] {
    check_config(config_with("deepseek_v2", {{"norm_topk_prob", true}}));
  });
  for (const auto& [key, value] : {std::pair("n_group", 3), {"n_group", 4}, {"topk_group", 2}}) {
    expect_error(ErrorCode::kCorruptData, {key}, [field = std::string(key), bad = value] {
      check_config(config_with("deepseek_v3", {{field, bad}}));
    });
  }
}

}  // namespace
}  // namespace saker::models
