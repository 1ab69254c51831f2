// SPDX-License-Identifier: Apache-2.0
// The roster against what the layers of every architecture take when they are built.
#include "saker/models/tensor_roster.h"

#include "saker/load/files/quantization.h"
#include "saker/load/files/weight_files.h"
#include "saker/models/detect.h"
#include "saker/models/model.h"
#include "saker/models/mtp.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

namespace saker::models {
namespace {

class RosterOfGoldens : public ::testing::TestWithParam<const char*> {};

TEST_P(RosterOfGoldens, SaysWhatTheLayersTake) {
  const auto dir = std::filesystem::path(SAKER_SOURCE_DIR) / "tests/golden" / GetParam();
  const Json config = read_json_file(dir / "config.json");
  auto tensors = load::read_model_tensors(dir).tensors;
  tensors.emplace("model.visual.blocks.0.weight", Tensor{});
  tensors.emplace("model.layers.0.self_attn.q_proj.g_idx", Tensor{});
  const auto names = load::tensor_names(tensors);
  const nn::Weights weights(std::move(tensors), load::parse_quantization(config));
  make_model(config, weights, {});
  make_mtp_head(config, weights);
  const TensorRoster roster = tensor_roster(config);
  std::vector<std::string> unread;
  for (const std::string& name : names) {
    if (!roster.has(name)) {
      unread.push_back(name);
    }
  }
  EXPECT_THAT(unread, ::testing::UnorderedElementsAreArray(weights.unused()));
  for (const nn::Module& module : weights.modules()) {
    if (!module.norm && (weights / module.path).has("weight")) {
      EXPECT_EQ(roster.columns(module.path), module.inputs) << module.path;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    All,
    RosterOfGoldens,
    ::testing::Values(
        "afmoe",
        "afmoe_mlx",
        "apertus",
        "falcon_h1",
        "falcon_h1_mlx",
        "falcon_h1_norm",
        "laguna",
        "laguna_elements",
        "laguna_mlx",
        "llama4",
        "llama4_text",
        "mimo",
        "bailing_hybrid",
        "bailing_hybrid_mlx",
        "bailing_moe",
        "bailing_moe_v2",
        "bailing_moe_v2_mlx",
        "cohere2",
        "deepseek_v2",
        "deepseek_v3",
        "deepseek_v3_single",
        "deepseek_v3_q4",
        "cohere2_moe",
        "dots1",
        "ernie4_5",
        "ernie4_5_moe",
        "exaone4",
        "gemma",
        "gemma2",
        "gemma3",
        "gemma3_nested",
        "gemma4",
        "gemma4_small",
        "gemma4_small_q4",
        "glm4_moe",
        "granite",
        "granitemoe",
        "granitemoehybrid",
        "granitemoehybrid_mlx",
        "granitemoehybrid_moe",
        "granitemoehybrid_moe_mlx",
        "hunyuan_v1_dense",
        "hunyuan_v1_moe",
        "kimi_linear",
        "kimi_linear_mlx",
        "lfm2",
        "lfm2_bias",
        "lfm2_moe",
        "lfm2_moe_mlx",
        "llama",
        "llama_bias",
        "minimax_m2",
        "ministral3",
        "mistral",
        "mistral3",
        "mixtral",
        "mixtral_window",
        "mtp/deepseek_v3",
        "mtp/glm4_moe",
        "mtp/qwen3",
        "mtp/qwen3_5",
        "nemotron_h",
        "nemotron_h_latent",
        "nemotron_h_moe",
        "mtp/qwen3_5_moe",
        "gemma4_moe",
        "gpt_oss",
        "gpt_oss_published",
        "olmo2",
        "olmo3",
        "olmoe",
        "phi3",
        "phi3_window",
        "qwen2",
        "qwen2_moe",
        "qwen3",
        "qwen3_5",
        "qwen3_5_moe",
        "qwen3_5_moe_published",
        "qwen3_5_published",
        "qwen3_mixed",
        "qwen3_moe",
        "qwen3_moe_q4",
        "qwen3_moe_single",
        "qwen3_next",
        "qwen3_next_published",
        "qwen3_vl",
        "qwen3_vl_moe",
        "seed_oss",
        "smollm3"
    ),
    [](const auto& test) {
      std::string name = test.param;
      std::ranges::replace(name, '/', '_');
      return name;
    }
);

TEST(TensorRoster, KnowsNoHeadThatIsTheEmbedding) {
  Json config =
      read_json_file(std::filesystem::path(SAKER_SOURCE_DIR) / "tests/golden/llama/config.json");
  config["tie_word_embeddings"] = false;
  EXPECT_TRUE(tensor_roster(config).has("lm_head.weight"));
  config["tie_word_embeddings"] = true;
  EXPECT_FALSE(tensor_roster(config).has("lm_head.weight"));
}

TEST(TensorRoster, KnowsPartsOfModules) {
  const TensorRoster roster = tensor_roster(
      read_json_file(std::filesystem::path(SAKER_SOURCE_DIR) / "tests/golden/llama/config.json")
  );
  for (const auto* name : {"weight", "scales", "biases", "bias"}) {
    EXPECT_TRUE(roster.has(std::string("language_model.model.layers.0.mlp.up_proj.") + name));
  }
  for (const auto* name :
       {"model.norm.bias",
        "model.layers.0.mlp.up_proj",
        "model.layers.99.mlp.up_proj.weight",
        "v_head.summary.weight",
        "weight",
        ""}) {
    EXPECT_FALSE(roster.has(name)) << name;
  }
  EXPECT_EQ(roster.columns("model.norm"), std::nullopt);
  EXPECT_EQ(roster.columns("v_head.summary"), std::nullopt);
}

}  // namespace
}  // namespace saker::models
