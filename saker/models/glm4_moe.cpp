// SPDX-License-Identifier: Apache-2.0
// GLM 4.5 to 4.7 and dots.llm1: Llama's layers with norms of heads. From a layer on, each has a
// mixture of experts for its MLP, whose sigmoid router chooses by scores plus biases, and an expert
// that all tokens share. GLM rotates a half of each head. The layer behind the last drafts tokens.
#include "saker/models/architecture.h"
#include "saker/models/moe_config.h"
#include "saker/models/mtp.h"

#include <cstdint>

namespace saker::models {
namespace {

constexpr nn::MoeNames kNames{.choice_bias = "gate.e_score_correction_bias"};
constexpr nn::MoeNames kDotsNames{.choice_bias = kNames.choice_bias, .stacks = "experts"};

struct Fallbacks {
  std::int64_t experts;
  std::int64_t chosen;
  std::int64_t shared;
  std::int64_t dense_layers;
  bool normalized;
};

void add_experts(DecoderConfig& config, const Json& json, const Fallbacks& fallbacks) {
  config.moe = read_moe(
      json,
      config,
      {.experts = {"n_routed_experts", fallbacks.experts},
       .chosen = {"num_experts_per_tok", fallbacks.chosen},
       .width = {"moe_intermediate_size", 1408}}
  );
  read_grouped_sigmoid(json, config.moe);
  config.moe.routing.normalized = json_bool(json, "norm_topk_prob", fallbacks.normalized);
  config.moe.names = kNames;
  config.moe.shared.intermediate =
      read_shared_width(json, {"n_shared_experts", fallbacks.shared}, config.moe);
  set_layers_after(config, json, {"first_k_dense_replace", fallbacks.dense_layers});
}

DecoderConfig read(const Json& json) {
  auto config = read_decoder_config(
      json,
      {.kv_heads = 8,
       .context_length = 131072,
       .rope = {.default_part = 0.5, .partial = true},
       .norm_eps = 1e-5}
  );
  config.head_norms = json_bool(json, "use_qk_norm", false);
  add_experts(
      config,
      json,
      {.experts = 128, .chosen = 8, .shared = 1, .dense_layers = 1, .normalized = true}
  );
  return config;
}

DecoderConfig read_dots1(const Json& json) {
  auto config = read_decoder_config(json, {.kv_heads = 32, .context_length = 2048});
  config.head_norms = true;
  add_experts(
      config, json, {.experts = 0, .chosen = 0, .shared = 0, .dense_layers = 0, .normalized = false}
  );
  config.moe.names = kDotsNames;
  const LayerPattern never = [](const Json&, int) { return false; };
  const auto layers = static_cast<int>(config.layers.size());
  set_windows(config, read_sliding_layers(json, layers, never), read_window(json, 4096));
  return config;
}

TensorRules rules(const nn::MoeNames& names) {
  return {
      .is_unread = is_behind_next_layer,
      .is_of_draft_head = is_of_next_layer,
      .experts = names,
      .keeps_dtype = is_choice_bias,
      .stays_float = [](std::string_view module) { return module.ends_with("mlp.gate"); },
  };
}

}  // namespace

Architecture glm4_moe() {
  return {
      .read = read,
      .build_layer = pre_norm_layer,
      .has_next_layers = true,
      .tensors = rules(kNames),
  };
}

Architecture dots1() {
  TensorRules tensors = rules(kDotsNames);
  tensors.keeps_dtype = TensorRules().keeps_dtype;
  tensors.is_unread = is_behind_layers;
  tensors.is_of_draft_head = TensorRules().is_of_draft_head;
  return {.read = read_dots1, .build_layer = pre_norm_layer, .tensors = tensors};
}

}  // namespace saker::models
