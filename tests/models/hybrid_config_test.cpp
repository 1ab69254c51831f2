// SPDX-License-Identifier: Apache-2.0
// Configurations of models with layers that have no rows: which layer is what, and bad values.
#include "saker/models/architecture.h"
#include "saker/models/decoder_config.h"

#include "tests/models/changed_config.h"
#include "tests/support/expect_error.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string_view>
#include <vector>

namespace saker::models {
namespace {

using ::testing::ElementsAre;
using testing::expect_error;

std::vector<TokenMixing> mixing_of(const DecoderConfig& config) {
  std::vector<TokenMixing> result;
  for (const LayerConfig& layer : config.layers) {
    result.push_back(layer.mixing);
  }
  return result;
}

// Every one of these keys with values that no model can have.
void expect_sizes_refused(std::string_view type, const std::vector<std::string>& keys) {
  for (const std::string& key : keys) {
    for (const Json& value : std::vector<Json>{0, -3, 1'000'000'000'000, "x", 2.5}) {
      SCOPED_TRACE(key + " " + value.dump());
      expect_error(ErrorCode::kCorruptData, {key}, [&] {
        check_config(config_with(type, {{key, value}}));
      });
    }
  }
}

TEST(HybridConfig, Lfm2AdjustsItsWidth) {
  const auto width = [](const Json& changes) {
    return lfm2().read(config_with("lfm2", changes)).intermediate;
  };
  EXPECT_EQ(width({{"block_ff_dim", 12288}, {"block_auto_adjust_ff_dim", true}}), 8192);
  EXPECT_EQ(width({{"block_ff_dim", 12288}}), 12288);
  EXPECT_EQ(
      width(
          {{"intermediate_size", 70},
           {"block_auto_adjust_ff_dim", true},
           {"block_multiple_of", 8},
           {"block_ffn_dim_multiplier", 1.1}}
      ),
      56
  );
}

TEST(HybridConfig, Lfm2ReadsItsLayers) {
  constexpr auto kConv = TokenMixing::kShortConvolution;
  constexpr auto kFull = TokenMixing::kAttention;
  EXPECT_THAT(
      mixing_of(lfm2().read(config_with("lfm2", Json::object()))),
      ElementsAre(kConv, kFull, kConv, kConv)
  );
  Json indexed = config_with("lfm2", {{"full_attn_idxs", {0, 3}}});
  indexed.erase("layer_types");
  EXPECT_THAT(mixing_of(lfm2().read(indexed)), ElementsAre(kFull, kConv, kConv, kFull));
  EXPECT_EQ(lfm2().read(indexed).cached_layers().size(), 4U);
}

TEST(HybridConfig, Lfm2NamesBadValues) {
  expect_sizes_refused("lfm2", {"conv_L_cache", "num_attention_heads", "num_key_value_heads"});
  const auto refused = [](ErrorCode code, std::string_view word, const Json& changes) {
    expect_error(code, {word}, [&] { check_config(config_with("lfm2", changes)); });
  };
  refused(ErrorCode::kUnsupported, "conv_L_cache is 1", {{"conv_L_cache", 1}});
  refused(ErrorCode::kCorruptData, "block_ff_dim", {{"block_ff_dim", 0}});
  refused(
      ErrorCode::kCorruptData,
      "block_ffn_dim_multiplier",
      {{"block_auto_adjust_ff_dim", true},
       {"block_ffn_dim_multiplier", std::numeric_limits<double>::quiet_NaN()}}
  );
  refused(
      ErrorCode::kUnsupported,
      "block_ffn_dim_multiplier",
      {{"block_auto_adjust_ff_dim", true}, {"block_ffn_dim_multiplier", 1e8}}
  );
  refused(ErrorCode::kCorruptData, "layer_types", {{"layer_types", {"conv"}}});
  refused(ErrorCode::kUnsupported, "mamba", {{"layer_types", {"conv", "mamba", "conv", "conv"}}});
  Json indexed = config_with("lfm2", {{"full_attn_idxs", "all"}});
  indexed.erase("layer_types");
  expect_error(ErrorCode::kCorruptData, {"full_attn_idxs"}, [&] { check_config(indexed); });
}

TEST(HybridConfig, GraniteReadsItsLayers) {
  constexpr auto kMamba = TokenMixing::kMamba2;
  const auto config = granitemoehybrid().read(config_with("granitemoehybrid", Json::object()));
  EXPECT_THAT(mixing_of(config), ElementsAre(kMamba, TokenMixing::kAttention, kMamba, kMamba));
  EXPECT_EQ(config.mamba2.max_step, std::numeric_limits<float>::infinity());
  const auto limited = granitemoehybrid().read(config_with(
      "granitemoehybrid",
      {{"time_step_limit", {0.25, {{"__float__", "Infinity"}}}}, {"mamba_d_head", "auto"}}
  ));
  EXPECT_EQ(limited.mamba2.min_step, 0.25F);
  EXPECT_EQ(limited.mamba2.max_step, std::numeric_limits<float>::infinity());
  EXPECT_EQ(limited.mamba2.shape.head_dim, 16);  // 2 * 32 / 4
}

TEST(HybridConfig, GraniteNamesBadValues) {
  expect_sizes_refused(
      "granitemoehybrid",
      {"mamba_n_heads", "mamba_d_head", "mamba_d_state", "mamba_n_groups", "mamba_d_conv"}
  );
  const auto refused = [](ErrorCode code, std::string_view word, const Json& changes) {
    expect_error(code, {word}, [&] { check_config(config_with("granitemoehybrid", changes)); });
  };
  refused(ErrorCode::kCorruptData, "mamba_n_heads is 5", {{"mamba_n_heads", 5}});
  refused(ErrorCode::kUnsupported, "mamba_d_conv is 1", {{"mamba_d_conv", 1}});
  refused(
      ErrorCode::kUnsupported,
      "above 16777216",
      {{"mamba_n_heads", 4096}, {"mamba_d_head", 4096}, {"mamba_d_state", 4096}}
  );
  refused(ErrorCode::kCorruptData, "layer_types", {{"layer_types", {"mamba", "attention"}}});
  refused(
      ErrorCode::kUnsupported, "conv", {{"layer_types", {"conv", "mamba", "mamba", "attention"}}}
  );
  refused(
      ErrorCode::kUnsupported, "position_embedding_type", {{"position_embedding_type", "alibi"}}
  );
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const Json& limits : std::vector<Json>{
           {0.5}, {0.5, 0.1}, {-1.0, 2.0}, {nan, 1.0}, {0.0, nan}, {"0", 1.0}, 0.5, "x"
       }) {
    refused(ErrorCode::kCorruptData, "time_step_limit", {{"time_step_limit", limits}});
  }
}

TEST(HybridConfig, NemotronReadsItsLayers) {
  const auto read = nemotron_h().read;
  const auto config = read(config_with("nemotron_h", {{"hybrid_override_pattern", "M-*-"}}));
  EXPECT_THAT(
      mixing_of(config),
      ElementsAre(
          TokenMixing::kMamba2, TokenMixing::kNone, TokenMixing::kAttention, TokenMixing::kNone
      )
  );
  EXPECT_EQ(config.layers[1].feed_forward, FeedForward::kMlp);
  EXPECT_EQ(config.layers[2].feed_forward, FeedForward::kNone);
  EXPECT_EQ(config.cached_layers().size(), 2U);
  Json named =
      config_with("nemotron_h", {{"layers_block_type", {"mamba", "mlp", "attention", "mlp"}}});
  named.erase("hybrid_override_pattern");
  EXPECT_EQ(mixing_of(read(named)), mixing_of(config));
  named["layers_block_type"] = {"linear_attention", "mlp", "full_attention", "mlp"};
  named.erase("num_hidden_layers");
  EXPECT_EQ(mixing_of(read(named)), mixing_of(config));
}

TEST(HybridConfig, NemotronReadsItsExperts) {
  const auto config =
      nemotron_h().read(config_with("nemotron_h", {{"routed_scaling_factor", 2.5}}));
  EXPECT_TRUE(config.layers[3].experts);
  EXPECT_FALSE(config.layers[2].experts);
  EXPECT_EQ(config.moe.latent, 32);
  EXPECT_EQ(config.moe.shared.intermediate, 32);
  EXPECT_EQ(config.moe.routing.scale, 2.5F);
}

TEST(HybridConfig, Lfm2ReadsItsExperts) {
  const auto config = lfm2_moe().read(config_with("lfm2_moe", {{"use_expert_bias", false}}));
  EXPECT_FALSE(config.layers[0].experts);
  EXPECT_TRUE(config.layers[1].experts);
  EXPECT_TRUE(config.moe.names.choice_bias.empty());
  expect_sizes_refused("lfm2_moe", {"num_experts", "num_experts_per_tok", "moe_intermediate_size"});
}

TEST(HybridConfig, NemotronNamesBadValues) {
  expect_sizes_refused(
      "nemotron_h",
      {"mamba_num_heads", "mamba_head_dim", "ssm_state_size", "n_groups", "conv_kernel"}
  );
  const auto refused = [](ErrorCode code, std::string_view word, const Json& changes) {
    expect_error(code, {word}, [&] { check_config(config_with("nemotron_h", changes)); });
  };
  constexpr std::string_view kPattern = "hybrid_override_pattern";
  refused(ErrorCode::kCorruptData, kPattern, {{kPattern, "M*"}});
  refused(ErrorCode::kCorruptData, kPattern, {{kPattern, ""}});
  refused(ErrorCode::kCorruptData, kPattern, {{kPattern, 7}});
  refused(ErrorCode::kUnsupported, kPattern, {{kPattern, "M*X-"}});
  refused(ErrorCode::kUnsupported, kPattern, {{kPattern, "----"}});
  refused(ErrorCode::kUnsupported, "mlp_hidden_act", {{"mlp_hidden_act", "silu"}});
}

TEST(HybridConfig, KimiReadsItsLayers) {
  constexpr auto kKda = TokenMixing::kKda;
  constexpr auto kFull = TokenMixing::kAttention;
  const auto read = [](const Json& config) { return kimi_linear().read(config); };
  const auto config = read(config_with("kimi_linear", Json::object()));
  EXPECT_THAT(mixing_of(config), ElementsAre(kKda, kFull, kKda, kKda));
  EXPECT_EQ(config.kda.shape, (kernels::KdaShape{.heads = 2, .head_dim = 32, .taps = 3}));
  EXPECT_EQ(config.ropes.front().kind, nn::RopeKind::kNone);
  EXPECT_EQ(config.latent->norm.eps, config.norm.eps);
  EXPECT_FALSE(config.layers[0].experts);
  EXPECT_TRUE(config.layers[1].experts);
  // As transformers stores it.
  Json own = config_with("kimi_linear", {{"linear_num_heads", 3}, {"linear_head_dim", 10}});
  own.erase("linear_attn_config");
  own["layer_types"] = {"full_attention", "linear_attention", "linear_attention", "full_attention"};
  own["model_max_length"] = 77;
  EXPECT_THAT(mixing_of(read(own)), ElementsAre(kFull, kKda, kKda, kFull));
  EXPECT_EQ(read(own).kda.shape, (kernels::KdaShape{.heads = 3, .head_dim = 10, .taps = 3}));
  EXPECT_EQ(read(own).context_length, 77);
}

TEST(HybridConfig, KimiNamesBadValues) {
  expect_sizes_refused(
      "kimi_linear",
      {"num_experts", "num_experts_per_token", "num_expert_group", "qk_rope_head_dim"}
  );
  const auto refused = [](ErrorCode code, std::string_view word, const Json& changes) {
    expect_error(code, {word}, [&] { check_config(config_with("kimi_linear", changes)); });
  };
  const auto section = [](const Json& changes) {
    Json config = small_config("kimi_linear")["linear_attn_config"];
    config.update(changes);
    return Json{{"linear_attn_config", config}};
  };
  for (const auto* key : {"num_heads", "head_dim", "short_conv_kernel_size"}) {
    for (const Json& value : std::vector<Json>{0, -3, 1'000'000'000'000, "x", 2.5}) {
      refused(ErrorCode::kCorruptData, key, section({{key, value}}));
    }
  }
  refused(
      ErrorCode::kUnsupported,
      "short_conv_kernel_size is 1",
      section({{"short_conv_kernel_size", 1}})
  );
  refused(
      ErrorCode::kUnsupported, "head_dim 2048", section({{"num_heads", 4096}, {"head_dim", 2048}})
  );
  refused(ErrorCode::kCorruptData, "kda_layers", section({{"kda_layers", "all"}}));
  refused(ErrorCode::kCorruptData, "kda_layers", section({{"kda_layers", {1.5}}}));
  refused(ErrorCode::kCorruptData, "linear_attn_config", {{"linear_attn_config", 4}});
  for (const Json& value : std::vector<Json>{0, -3, "x", 1e300}) {
    refused(ErrorCode::kCorruptData, "model_max_length", {{"model_max_length", value}});
  }
  refused(ErrorCode::kUnsupported, "mla_use_nope", {{"mla_use_nope", false}});
  refused(ErrorCode::kUnsupported, "softmax", {{"moe_router_activation_func", "softmax"}});
  Json without = config_with("kimi_linear", Json::object());
  without.erase("linear_attn_config");
  expect_error(ErrorCode::kCorruptData, {"kda_layers", "missing"}, [&] { check_config(without); });
}

TEST(HybridConfig, Ling3ReadsItsLayers) {
  constexpr auto kKda = TokenMixing::kKda;
  constexpr auto kFull = TokenMixing::kAttention;
  const auto mixing = [](const Json& changes) {
    return mixing_of(bailing_hybrid().read(config_with("bailing_hybrid", changes)));
  };
  EXPECT_THAT(mixing(Json::object()), ElementsAre(kKda, kFull, kKda, kFull));
  EXPECT_THAT(mixing({{"layer_group_size", 3}}), ElementsAre(kKda, kKda, kFull, kFull));
  const auto bound = [](const Json& changes) {
    return bailing_hybrid().read(config_with("bailing_hybrid", changes)).kda.lower_bound;
  };
  EXPECT_EQ(bound(Json::object()), -5.0F);
  EXPECT_EQ(bound({{"kda_lower_bound", -2.5}}), -2.5F);
  EXPECT_EQ(bound({{"kda_safe_gate", false}}), 0.0F);
}

TEST(HybridConfig, LingNamesBadValues) {
  expect_sizes_refused("bailing_hybrid", {"layer_group_size", "short_conv_kernel_size", "n_group"});
  expect_sizes_refused("bailing_moe", {"num_experts", "num_experts_per_tok", "n_group"});
  const auto refused =
      [](ErrorCode code, std::string_view type, std::string_view word, const Json& changes) {
        expect_error(code, {word}, [&] { check_config(config_with(type, changes)); });
      };
  constexpr auto kUnsupported = ErrorCode::kUnsupported;
  for (const Json& value :
       std::vector<Json>{0, 1.0, "low", std::numeric_limits<double>::quiet_NaN(), -1e30}) {
    refused(
        ErrorCode::kCorruptData, "bailing_hybrid", "kda_lower_bound", {{"kda_lower_bound", value}}
    );
  }
  refused(kUnsupported, "bailing_hybrid", "group_norm_size", {{"group_norm_size", 4}});
  refused(kUnsupported, "bailing_hybrid", "no_kda_lora", {{"no_kda_lora", false}});
  refused(
      kUnsupported,
      "bailing_hybrid",
      "head_dim 2048",
      {{"num_attention_heads", 8}, {"head_dim", 2048}}
  );
  refused(kUnsupported, "bailing_moe", "norm_head", {{"norm_head", true}});
  refused(kUnsupported, "bailing_moe", "score_function", {{"score_function", "sqrt"}});
  refused(ErrorCode::kCorruptData, "bailing_moe", "rotary_dim", {{"rotary_dim", 9}});
}

}  // namespace
}  // namespace saker::models
