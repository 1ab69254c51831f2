// SPDX-License-Identifier: Apache-2.0
// Configurations and names of models with latent attention.
#include "saker/base/error.h"
#include "saker/load/gguf/gguf_model.h"

#include "tests/load/gguf/small_llama.h"
#include "tests/support/expect_error.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/temporary_dir.h"
#include <gtest/gtest.h>

#include <set>
#include <string>

namespace saker::load::gguf {
namespace {

using saker::testing::expect_error;
using saker::testing::GgufBuilder;
using saker::testing::TemporaryDir;

const std::string kName = "deepseek2";

importers::ImportedModel open(GgufBuilder builder) {
  builder.tensor("token_embd.weight", {kHidden, kVocabulary}, kF32, f32(kHidden * kVocabulary));
  const TemporaryDir dir;
  return open_gguf(dir.write("model.gguf", builder.file()));
}

std::set<std::string> tensor_names(const GgufBuilder& builder) {
  std::set<std::string> names;
  for (const auto& tensor : open(builder).tensors) {
    names.insert(tensor.outputs.front().name);
  }
  return names;
}

// Heads of 16 elements and 8 that rotate, values of 12.
GgufBuilder sizes(std::string_view suffix = "_mla") {
  GgufBuilder file = metadata(kName, "attention.key_length");
  const std::string key = kName + ".attention.";
  file.integer(key + "kv_lora_rank", 32)
      .integer(key + "key_length" + std::string(suffix), 24)
      .integer(key + "value_length" + std::string(suffix), 12)
      .integer(kName + ".rope.dimension_count", 8);
  return file;
}

GgufBuilder mixture() {
  GgufBuilder file = sizes();
  file.integer(kName + ".expert_count", 8)
      .integer(kName + ".expert_used_count", 2)
      .integer(kName + ".expert_feed_forward_length", 20)
      .integer(kName + ".expert_shared_count", 1)
      .integer(kName + ".leading_dense_block_count", 1)
      .number(kName + ".expert_weights_scale", 2.5F);
  return file;
}

TEST(GgufLatent, SizesComeInTwoForms) {
  for (const auto* suffix : {"_mla", ""}) {
    const Json config = open(sizes(suffix)).config;
    EXPECT_EQ(config["kv_lora_rank"], 32) << suffix;
    EXPECT_EQ(config["q_lora_rank"], nullptr);
    EXPECT_EQ(config["qk_nope_head_dim"], 16);
    EXPECT_EQ(config["qk_rope_head_dim"], 8);
    EXPECT_EQ(config["v_head_dim"], 12);
    EXPECT_EQ(config["n_routed_experts"], nullptr);
  }
  GgufBuilder latent = sizes();
  latent.integer(kName + ".attention.q_lora_rank", 24);
  EXPECT_EQ(open(latent).config["q_lora_rank"], 24);
}

TEST(GgufLatent, RoutersAreToldByKeyOrBias) {
  const auto type = [](const GgufBuilder& file) { return open(file).config["model_type"]; };
  EXPECT_EQ(type(mixture()), "deepseek_v2");
  GgufBuilder bias = mixture();
  bias.tensor("blk.0.exp_probs_b.bias", {8}, kF32, f32(8));
  EXPECT_EQ(type(bias), "deepseek_v3");
  GgufBuilder said = mixture();
  said.integer(kName + ".expert_gating_func", 2);
  EXPECT_EQ(type(said), "deepseek_v3");
  GgufBuilder groups = mixture();
  groups.integer(kName + ".expert_group_count", 4).integer(kName + ".expert_group_used_count", 2);
  const Json config = open(groups).config;
  EXPECT_EQ(config["topk_method"], "group_limited_greedy");
  EXPECT_EQ(config["topk_group"], 2);
  EXPECT_EQ(config["routed_scaling_factor"], 2.5);
  GgufBuilder other = mixture();
  other.integer(kName + ".expert_gating_func", 4);
  expect_error(ErrorCode::kUnsupported, {"expert_gating_func", "4", "sigmoid"}, [&] {
    open(other);
  });
}

TEST(GgufLatent, YarnScalesScores) {
  GgufBuilder file = sizes();
  file.string(kName + ".rope.scaling.type", "yarn")
      .number(kName + ".rope.scaling.factor", 40.0F)
      .integer(kName + ".rope.scaling.original_context_length", 64)
      .number(kName + ".rope.scaling.yarn_log_multiplier", 0.1F);
  const Json scaling = open(file).config["rope_scaling"];
  EXPECT_NEAR(scaling["mscale_all_dim"].get<double>(), 1.0, 1e-6);
  EXPECT_EQ(scaling["mscale"], scaling["mscale_all_dim"]);
}

TEST(GgufLatent, TensorsHaveTheirPlaces) {
  GgufBuilder file = mixture();
  file.tensor("blk.0.attn_q_a.weight", {kHidden, 24}, kF32, f32(kHidden * 24))
      .tensor("blk.0.attn_q_a_norm.weight", {24}, kF32, f32(24))
      .tensor("blk.0.attn_kv_a_mqa.weight", {kHidden, 40}, kF32, f32(kHidden * 40))
      .tensor("blk.0.attn_k_b.weight", {16, 32, 4}, kF32, f32(2048))
      .tensor("blk.0.attn_v_b.weight", {32, 12, 4}, kF32, f32(1536))
      .tensor("blk.0.attn_kv_b.weight", {32, 112}, kF32, f32(3584))
      .tensor("blk.0.exp_probs_b.bias", {8}, kF32, f32(8))
      .tensor("blk.0.ffn_up_shexp.weight", {kHidden, 20}, kF32, f32(kHidden * 20))
      .tensor("blk.1.nextn.enorm.weight", {kHidden}, kF32, f32(kHidden));
  const std::set<std::string> expected{
      "model.embed_tokens.weight",
      "model.layers.0.self_attn.q_a_proj.weight",
      "model.layers.0.self_attn.q_a_layernorm.weight",
      "model.layers.0.self_attn.kv_a_proj_with_mqa.weight",
      "model.layers.0.self_attn.embed_q.weight",
      "model.layers.0.self_attn.unembed_out.weight",
      "model.layers.0.self_attn.kv_b_proj.weight",
      "model.layers.0.mlp.gate.e_score_correction_bias",
      "model.layers.0.mlp.shared_experts.up_proj.weight",
  };
  EXPECT_EQ(tensor_names(file), expected);
}

TEST(GgufLatent, MissingAndWrongSizesAreNamed) {
  expect_error(ErrorCode::kCorruptData, {"rope.dimension_count"}, [] { open(metadata(kName)); });
  GgufBuilder narrow = metadata(kName);
  narrow.integer(kName + ".attention.kv_lora_rank", 32)
      .integer(kName + ".attention.key_length_mla", 8)
      .integer(kName + ".attention.value_length_mla", 12)
      .integer(kName + ".rope.dimension_count", 8);
  expect_error(ErrorCode::kUnsupported, {"key_length_mla", "8"}, [&] { open(narrow); });
}

}  // namespace
}  // namespace saker::load::gguf
