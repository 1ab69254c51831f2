// SPDX-License-Identifier: Apache-2.0
// Configurations of models whose attention has a gate, chunks or Mamba-2 beside it, and of xIELU.
#include "saker/models/architecture.h"
#include "saker/models/decoder_config.h"

#include "tests/models/changed_config.h"
#include "tests/support/expect_error.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string_view>
#include <vector>

namespace saker::models {
namespace {

using ::testing::ElementsAre;
using testing::expect_error;

// For each layer.
template <typename Property>
auto of_layers(const DecoderConfig& config, Property property) {
  std::vector<std::invoke_result_t<Property, const LayerConfig&>> result;
  for (const LayerConfig& layer : config.layers) {
    result.push_back(property(layer));
  }
  return result;
}

void expect_refused(
    std::string_view type, ErrorCode code, std::string_view word, const Json& changes
) {
  expect_error(code, {word}, [&] { check_config(config_with(type, changes)); });
}

TEST(GateConfig, TrinitysFullLayersDoNotRotate) {
  const auto config =
      afmoe().read(config_with("afmoe", {{"sliding_window", 9}, {"mup_enabled", true}}));
  EXPECT_THAT(windows(config), ElementsAre(9, 0, 9, 0));
  EXPECT_THAT(
      of_layers(config, [](const auto& layer) { return layer.rope; }), ElementsAre(0, 1, 0, 1)
  );
  EXPECT_THAT(
      of_layers(config, [](const auto& layer) { return layer.experts; }),
      ElementsAre(false, true, true, true)
  );
  EXPECT_FLOAT_EQ(config.embedding_scale, std::sqrt(32.0F));
  EXPECT_EQ(afmoe().read(config_with("afmoe", {{"mup_enabled", false}})).embedding_scale, 1.0F);
  expect_refused("afmoe", ErrorCode::kUnsupported, "score_func", {{"score_func", "best"}});
  expect_refused("afmoe", ErrorCode::kCorruptData, "route_scale", {{"route_scale", 0}});
  expect_refused("afmoe", ErrorCode::kCorruptData, "route_norm", {{"route_norm", 2}});
  for (const auto* key : {"num_experts", "num_experts_per_tok", "moe_intermediate_size"}) {
    expect_refused("afmoe", ErrorCode::kCorruptData, key, {{key, 0}});
  }
}

TEST(GateConfig, LagunasLayersHaveHeadsAndRopesOfTheirOwn) {
  const Json ropes = {
      {"full_attention", {{"rope_theta", 5e5}, {"partial_rotary_factor", 0.5}}},
      {"sliding_attention", {{"rope_theta", 1e3}}}
  };
  const Json changes = {
      {"num_attention_heads_per_layer", {4, 6, 8, 4}},
      {"layer_types", {"full_attention", "sliding_attention", "sliding_attention", "full_attention"}
      },
      {"sliding_window", 9},
      {"rope_parameters", ropes},
      {"mlp_layer_types", {"dense", "sparse", "dense", "sparse"}},
  };
  const auto config = laguna().read(config_with("laguna", changes));
  EXPECT_EQ(config.attention(2).heads, 8);
  EXPECT_EQ(config.attention(3).heads, 4);
  EXPECT_THAT(windows(config), ElementsAre(0, 9, 9, 0));
  EXPECT_EQ(config.ropes[0].theta, 5e5);
  EXPECT_EQ(config.ropes[0].part, 0.5);
  EXPECT_EQ(config.ropes[1].theta, 1e3);
  EXPECT_EQ(config.ropes[1].part, 1.0);
  EXPECT_THAT(
      of_layers(config, [](const auto& layer) { return layer.experts; }),
      ElementsAre(false, true, false, true)
  );
}

TEST(GateConfig, LagunaNamesBadValues) {
  constexpr std::string_view kHeads = "num_attention_heads_per_layer";
  for (const Json& value : std::vector<Json>{
           {4, 4}, {4, 4, 4, 5}, {4, 4, 4, 0}, {4, 4, 4, "x"}, 4, {4, 4, 4, 1'000'000'000'000}
       }) {
    expect_refused("laguna", ErrorCode::kCorruptData, kHeads, {{kHeads, value}});
  }
  expect_refused("laguna", ErrorCode::kUnsupported, "gating", {{"gating", "per-layer"}});
  expect_refused("laguna", ErrorCode::kUnsupported, "gating", {{"gating", 3}});
  constexpr std::string_view kCap = "moe_router_logit_softcapping";
  expect_refused("laguna", ErrorCode::kCorruptData, kCap, {{kCap, -1.0}});
  expect_refused("laguna", ErrorCode::kCorruptData, kCap, {{kCap, std::nan("")}});
  constexpr std::string_view kScore = "moe_router_score_func";
  expect_refused("laguna", ErrorCode::kUnsupported, kScore, {{kScore, "softmax"}});
  constexpr std::string_view kInputs = "moe_apply_router_weight_on_input";
  expect_refused("laguna", ErrorCode::kUnsupported, kInputs, {{kInputs, true}});
  constexpr std::string_view kTypes = "mlp_layer_types";
  expect_refused("laguna", ErrorCode::kCorruptData, kTypes, {{kTypes, {"dense"}}});
  expect_refused(
      "laguna", ErrorCode::kUnsupported, kTypes, {{kTypes, {"dense", "thin", "sparse", "sparse"}}}
  );
  EXPECT_FALSE(laguna().read(config_with("laguna", {{"gating", false}})).gate_projection);
  EXPECT_FALSE(
      laguna().read(config_with("laguna", {{"gating", "per-element"}})).gate_projection->by_head
  );
}

TEST(GateConfig, Llama4sFullLayersDoNotRotate) {
  const auto config = llama4().read(
      config_with("llama4", {{"no_rope_layers", {1, 0, 1, 1}}, {"attention_chunk_size", 7}})
  );
  EXPECT_THAT(windows(config), ElementsAre(7, 0, 7, 7));
  EXPECT_EQ(config.attention(0).attend.chunk, 7);
  EXPECT_TRUE(config.attention(0).unit_norm);
  EXPECT_EQ(config.attention(0).query_scaling.beta, 0.0);
  EXPECT_EQ(config.attention(1).attend.chunk, 0);
  EXPECT_FALSE(config.attention(1).unit_norm);
  EXPECT_EQ(config.attention(1).query_scaling.beta, 0.1);
  const Json unchunked = {{"attention_chunk_size", nullptr}, {"attn_temperature_tuning", 0}};
  const auto plain = llama4().read(config_with("llama4", unchunked));
  EXPECT_THAT(windows(plain), ElementsAre(0, 0, 0, 0));
  EXPECT_EQ(plain.attention(1).query_scaling.beta, 0.0);
}

TEST(GateConfig, Llama4NamesBadValues) {
  for (const auto* key :
       {"attention_chunk_size",
        "interleave_moe_layer_step",
        "intermediate_size_mlp",
        "no_rope_layer_interval",
        "floor_scale",
        "num_local_experts"}) {
    for (const Json& value : std::vector<Json>{0, -3, 1'000'000'000'000'000, "x", 2.5}) {
      expect_refused("llama4", ErrorCode::kCorruptData, key, {{key, value}});
    }
  }
  expect_refused("llama4", ErrorCode::kCorruptData, "attn_scale", {{"attn_scale", std::nan("")}});
  constexpr std::string_view kRopes = "no_rope_layers";
  expect_refused("llama4", ErrorCode::kCorruptData, kRopes, {{kRopes, {1, 0}}});
  expect_refused("llama4", ErrorCode::kCorruptData, kRopes, {{kRopes, {1, 0, 1, 2}}});
  expect_refused("llama4", ErrorCode::kCorruptData, "moe_layers", {{"moe_layers", {"x"}}});
}

TEST(GateConfig, FalconsLayersHaveTwoCaches) {
  const auto config = falcon_h1().read(config_with("falcon_h1", Json::object()));
  const auto caches = config.cached_layers();
  ASSERT_EQ(caches.size(), 8U);
  EXPECT_EQ(caches[0].mixing, TokenMixing::kMamba2);
  EXPECT_EQ(caches[1].mixing, TokenMixing::kAttention);
  EXPECT_FLOAT_EQ(config.attention_scale, 0.5F / std::sqrt(8.0F));
}

TEST(GateConfig, FalconNamesBadValues) {
  for (const auto* key : {"mamba_n_heads", "mamba_d_ssm", "mamba_d_state", "mamba_n_groups"}) {
    for (const Json& value : std::vector<Json>{0, -3, 1'000'000'000'000, "x", 2.5}) {
      expect_refused("falcon_h1", ErrorCode::kCorruptData, key, {{key, value}});
    }
  }
  expect_refused("falcon_h1", ErrorCode::kCorruptData, "mamba_d_ssm 40", {{"mamba_d_ssm", 40}});
  for (const auto* key : {"key_multiplier", "embedding_multiplier", "ssm_out_multiplier"}) {
    for (const Json& value : std::vector<Json>{std::nan(""), 1e300, "x"}) {
      expect_refused("falcon_h1", ErrorCode::kCorruptData, key, {{key, value}});
    }
  }
  for (const auto* key : {"ssm_multipliers", "mlp_multipliers"}) {
    for (const Json& value : std::vector<Json>{{1.0}, "x", {1.0, "x"}, 3}) {
      expect_refused("falcon_h1", ErrorCode::kCorruptData, key, {{key, value}});
    }
  }
}

TEST(GateConfig, ApertusHasOneActivation) {
  const auto config = apertus().read(config_with("apertus", Json::object()));
  EXPECT_EQ(config.activation, kernels::Activation::kXielu);
  EXPECT_EQ(config.ropes.front().theta, 12e6);
  EXPECT_EQ(config.ropes.front().kind, nn::RopeKind::kLlama3);
  expect_refused("apertus", ErrorCode::kUnsupported, "hidden_act", {{"hidden_act", "silu"}});
}

}  // namespace
}  // namespace saker::models
