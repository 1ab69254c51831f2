// SPDX-License-Identifier: Apache-2.0
// Configurations and names of families that differ from Llama in norms, ropes and factors.
#include "saker/base/error.h"
#include "saker/load/gguf/gguf_model.h"

#include "tests/load/gguf/small_llama.h"
#include "tests/support/expect_error.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/temporary_dir.h"
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace saker::load::gguf {
namespace {

using saker::testing::expect_error;
using saker::testing::GgufBuilder;
using saker::testing::TemporaryDir;

GgufBuilder with_table(GgufBuilder builder) {
  builder.tensor("token_embd.weight", {kHidden, kVocabulary}, kF32, f32(kHidden * kVocabulary));
  return builder;
}

importers::ImportedModel open(const GgufBuilder& builder) {
  const TemporaryDir dir;
  return open_gguf(dir.write("model.gguf", builder.file()));
}

Json config_of(const GgufBuilder& builder) {
  return open(with_table(builder)).config;
}

std::set<std::string> tensor_names(const GgufBuilder& builder) {
  std::set<std::string> names;
  for (const auto& tensor : open(with_table(builder)).tensors) {
    names.insert(tensor.outputs.front().name);
  }
  return names;
}

TEST(GgufDenseFamilies, GraniteHasFourFactors) {
  GgufBuilder file = metadata("granite");
  file.number("granite.embedding_scale", 12.0F)
      .number("granite.residual_scale", 0.25F)
      .number("granite.attention.scale", 0.125F)
      .number("granite.logit_scale", 8.0F);
  const Json config = config_of(file);
  EXPECT_EQ(config["model_type"], "granite");
  EXPECT_EQ(config["embedding_multiplier"], 12.0);
  EXPECT_EQ(config["residual_multiplier"], 0.25);
  EXPECT_EQ(config["attention_multiplier"], 0.125);
  EXPECT_EQ(config["logits_scaling"], 8.0);
  EXPECT_EQ(config_of(metadata("granite"))["attention_multiplier"], 0.25);  // Heads of 16.
}

TEST(GgufDenseFamilies, Cohere2HasLayerNorms) {
  GgufBuilder file = metadata("cohere2");
  file.number("cohere2.attention.layer_norm_epsilon", 0.5F)
      .number("cohere2.logit_scale", 0.25F)
      .integer("cohere2.attention.sliding_window", 7);
  const Json config = config_of(file);
  EXPECT_EQ(config["layer_norm_eps"], 0.5);
  EXPECT_EQ(config["logit_scale"], 0.25);
  EXPECT_EQ(config["sliding_window"], 7);
}

TEST(GgufDenseFamilies, AWindowMakesAnOlmo3) {
  const Json plain = config_of(metadata("olmo2"));
  EXPECT_EQ(plain["model_type"], "olmo2");
  EXPECT_EQ(plain["sliding_window"], nullptr);
  GgufBuilder file = metadata("olmo2");
  file.integer("olmo2.attention.sliding_window", 7);
  EXPECT_EQ(config_of(file)["model_type"], "olmo3");
  EXPECT_EQ(config_of(file)["sliding_window"], 7);
  GgufBuilder layer = metadata("olmo2");
  layer.tensor("blk.0.post_attention_norm.weight", {kHidden}, kF32, f32(kHidden))
      .tensor("blk.0.post_ffw_norm.weight", {kHidden}, kF32, f32(kHidden))
      .tensor("blk.0.attn_q_norm.weight", {kHidden}, kF32, f32(kHidden));
  const auto names = tensor_names(layer);
  for (const auto* name :
       {"post_attention_layernorm", "post_feedforward_layernorm", "self_attn.q_norm"}) {
    EXPECT_TRUE(names.contains(std::string("model.layers.0.") + name + ".weight")) << name;
  }
}

TEST(GgufDenseFamilies, Phi3sProjectionsAreJoined) {
  GgufBuilder layer = metadata("phi3");
  layer.tensor("blk.0.attn_qkv.weight", {kHidden, 128}, kF32, f32(kHidden * 128))
      .tensor("blk.0.ffn_up.weight", {kHidden, 64}, kF32, f32(kHidden * 64));
  const auto names = tensor_names(layer);
  EXPECT_TRUE(names.contains("model.layers.0.self_attn.qkv_proj.weight"));
  EXPECT_TRUE(names.contains("model.layers.0.mlp.gate_up_proj.weight"));
}

// The context of 512 positions chooses the list.
TEST(GgufDenseFamilies, Phi3sRopeHasAListOfFactors) {
  const auto file = [](std::uint32_t original) {
    GgufBuilder builder = metadata("phi3");
    builder.integer("phi3.rope.dimension_count", 12)
        .integer("phi3.rope.scaling.original_context_length", original)
        .number("phi3.rope.scaling.attn_factor", 1.25F)
        .tensor(
            "rope_factors_long.weight",
            {6},
            kF32,
            bytes_as(std::vector<float>(6, 2.0F), DType::kFloat32)
        )
        .tensor(
            "rope_factors_short.weight",
            {6},
            kF32,
            bytes_as(std::vector<float>(6, 1.0F), DType::kFloat32)
        );
    return config_of(builder);
  };
  const Json extended = file(64);
  EXPECT_EQ(extended["partial_rotary_factor"], 0.75);
  EXPECT_EQ(extended["rope_scaling"]["rope_type"], "longrope");
  EXPECT_EQ(extended["rope_scaling"]["long_factor"], std::vector<double>(6, 2.0));
  EXPECT_EQ(extended["rope_scaling"]["attention_factor"], 1.25);
  EXPECT_EQ(extended["original_max_position_embeddings"], 64);
  EXPECT_EQ(file(512)["rope_scaling"]["short_factor"], std::vector<double>(6, 1.0));
  EXPECT_FALSE(config_of(metadata("phi3")).contains("rope_scaling"));
}

TEST(GgufDenseFamilies, Mistral3ScalesQueries) {
  GgufBuilder file = metadata("mistral3");
  file.string("mistral3.rope.scaling.type", "yarn")
      .number("mistral3.rope.scaling.factor", 16.0F)
      .integer("mistral3.rope.scaling.original_context_length", 64)
      .number("mistral3.rope.scaling.yarn_log_multiplier", 1.0F)
      .number("mistral3.attention.temperature_scale", 0.5F);
  const Json config = config_of(file);
  EXPECT_EQ(config["model_type"], "ministral3");
  EXPECT_EQ(config["rope_scaling"]["llama_4_scaling_beta"], 0.5);
  EXPECT_EQ(config["rope_scaling"]["mscale_all_dim"], 1.0);
  EXPECT_EQ(config["rope_scaling"]["original_max_position_embeddings"], 64);
}

TEST(GgufDenseFamilies, OthersAreNamedAsInFolders) {
  const std::vector<std::pair<std::string, std::string>> types{
      {"smollm3", "smollm3"},
      {"qwen3vl", "qwen3_vl"},
      {"seed_oss", "seed_oss"},
      {"exaone4", "exaone4"},
      {"ernie4_5", "ernie4_5"},
  };
  for (const auto& [family, type] : types) {
    EXPECT_EQ(config_of(metadata(family))["model_type"], type);
  }
}

}  // namespace
}  // namespace saker::load::gguf
