// SPDX-License-Identifier: Apache-2.0
// What architectures say of their tensors. tests/load/convert has the conversions that follow.
#include "saker/models/tensor_rules.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace saker::models {
namespace {

using Shape = std::vector<std::int64_t>;

TensorMap kernel_of(Shape shape) {
  return {
      {"model.layers.0.linear_attn.conv1d.weight",
       Tensor{.dtype = DType::kBFloat16, .shape = std::move(shape), .data = {}, .release = {}}}
  };
}

TEST(TensorRules, ConfigurationsWithoutAnExceptionChangeNothing) {
  for (const Json& config :
       {Json::object(), Json::array(), Json{{"model_type", 5}}, Json{{"model_type", "llama"}}}) {
    const TensorRules rules = tensor_rules(config);
    EXPECT_FALSE(rules.is_unread("model.layers.0.self_attn.k_proj.weight", config));
    EXPECT_EQ(rules.mlx_scope(config), "");
    EXPECT_FALSE(rules.needs_sanitizing(kernel_of({8, 1, 4})));
    EXPECT_EQ(rules.sanitized("norm.weight", {8}).shape, Shape{8});
    EXPECT_EQ(rules.sanitized("norm.weight", {8}).offset, 0.0F);
    EXPECT_FALSE(rules.keeps_dtype("linear_attn.A_log"));
    EXPECT_FALSE(rules.own_format("mlp.gate").has_value());
  }
}

TEST(TensorRules, LayersThatShareRowsReadNoneOfTheirOwn) {
  const Json text = {{"num_hidden_layers", 4}, {"num_kv_shared_layers", 1}};
  for (const auto* type : {"gemma4", "gemma4_unified", "gemma4_assistant"}) {
    const Json config = {{"model_type", type}, {"text_config", text}};
    const TensorRules rules = tensor_rules(config);
    EXPECT_TRUE(rules.is_unread("model.language_model.layers.3.self_attn.k_norm.weight", config));
    EXPECT_TRUE(rules.is_unread("language_model.model.layers.3.self_attn.v_proj.scales", config));
    EXPECT_TRUE(rules.is_unread("layers.3.self_attn.k_proj.weight", config));
    EXPECT_FALSE(rules.is_unread("model.layers.3.self_attn.q_proj.weight", config));
    EXPECT_FALSE(rules.is_unread("model.layers.2.self_attn.k_proj.weight", config));
    EXPECT_FALSE(rules.is_unread("vision_tower.layers.3.self_attn.k_proj.weight", config));
    EXPECT_TRUE(rules.is_unread("model.layers.0.mlp.up_proj.output_min", config));
  }
}

TEST(TensorRules, SomeTensorsHaveOtherNamesInMlxModels) {
  using Names = std::vector<std::string>;
  const auto names = [](const Json& config, std::string_view name) {
    return tensor_rules(config).mlx_names(name, config);
  };
  const Json laguna = {{"model_type", "laguna"}};
  EXPECT_EQ(names(laguna, "layers.1.mlp.gate.weight"), Names{"layers.1.mlp.gate.proj.weight"});
  EXPECT_EQ(
      names(laguna, "layers.1.mlp.experts.e_score_correction_bias"),
      Names{"layers.1.mlp.gate.e_score_correction_bias"}
  );
  EXPECT_EQ(names(laguna, "layers.1.mlp.gate_proj.weight"), Names{"layers.1.mlp.gate_proj.weight"});
  const Json lfm2 = {{"model_type", "lfm2_moe"}};
  EXPECT_EQ(
      names(lfm2, "layers.0.feed_forward.w3.weight"), Names{"layers.0.feed_forward.up_proj.weight"}
  );
  EXPECT_EQ(
      names(lfm2, "layers.1.feed_forward.experts.0.w3.weight"),
      Names{"layers.1.feed_forward.experts.0.w3.weight"}
  );
  const Json granite = {{"model_type", "granitemoehybrid"}, {"num_local_experts", 0}};
  EXPECT_EQ(
      names(granite, "layers.0.shared_mlp.input_linear.weight"),
      (Names{"layers.0.mlp.gate_proj.weight", "layers.0.mlp.up_proj.weight"})
  );
  EXPECT_EQ(
      names(granite, "layers.0.shared_mlp.output_linear.weight"),
      Names{"layers.0.mlp.down_proj.weight"}
  );
}

TEST(TensorRules, FalconsFactorsAreInMlxWeights) {
  const Json config = {
      {"model_type", "falcon_h1"},
      {"hidden_size", 8},
      {"num_hidden_layers", 1},
      {"num_attention_heads", 2},
      {"intermediate_size", 4},
      {"vocab_size", 5},
      {"mamba_n_heads", 2},
      {"mamba_d_head", 1},
      {"mamba_d_ssm", 2},
      {"mamba_d_state", 1},
      {"ssm_in_multiplier", 3.0},
      {"ssm_multipliers", {1.0, 2.0, 3.0, 4.0, 5.0}},
      {"mlp_multipliers", {0.5, 0.25}},
  };
  const TensorRules rules = tensor_rules(config);
  const auto inputs = rules.row_factors("model.layers.0.mamba.in_proj.weight", config);
  EXPECT_EQ(inputs.all, 3.0F);
  EXPECT_EQ(inputs.rows, (std::vector<float>{1, 1, 2, 2, 3, 4, 5, 5}));
  EXPECT_EQ(rules.row_factors("layers.0.feed_forward.down_proj.weight", config).all, 0.25F);
  EXPECT_TRUE(rules.row_factors("layers.0.self_attn.v_proj.weight", config).is_one());
}

TEST(TensorRules, PublishedKernelsAndNormsAreSanitized) {
  const TensorRules rules = tensor_rules({{"model_type", "qwen3_5_text"}});
  EXPECT_TRUE(rules.needs_sanitizing(kernel_of({8, 1, 4})));
  EXPECT_FALSE(rules.needs_sanitizing(kernel_of({8, 4, 1})));
  EXPECT_FALSE(rules.needs_sanitizing(kernel_of({})));
  const auto* kernel = "model.layers.0.linear_attn.conv1d.weight";
  EXPECT_EQ(rules.sanitized(kernel, {8, 1, 4}).shape, (Shape{8, 4, 1}));
  EXPECT_EQ(rules.sanitized("model.norm.weight", {8}).offset, 1.0F);
  EXPECT_EQ(rules.sanitized("model.layers.0.linear_attn.norm.weight", {8}).offset, 0.0F);
  EXPECT_TRUE(rules.keeps_dtype("model.layers.0.linear_attn.A_log"));
}

TEST(TensorRules, OnlySomeHeadsAreAlwaysTheEmbedding) {
  EXPECT_TRUE(is_always_tied("gemma"));
  EXPECT_TRUE(is_always_tied("gemma2"));
  EXPECT_FALSE(is_always_tied("gemma3"));
  EXPECT_FALSE(is_always_tied("llama"));
  EXPECT_FALSE(is_always_tied("unknown"));
}

}  // namespace
}  // namespace saker::models
