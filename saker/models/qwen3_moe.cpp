// SPDX-License-Identifier: Apache-2.0
// Qwen 3 with experts: Qwen 3's layers, some with a mixture of experts for their MLP. With
// `use_sliding_window` all layers slide. Qwen 3 VL's text part is the same under other names: its
// published experts are fused, inputs before outputs.
#include "saker/models/architecture.h"
#include "saker/models/moe_config.h"

namespace saker::models {
namespace {

constexpr nn::MoeNames kTransposed{.fused_transposed = true};

// Transformers has a second name for the number of experts.
std::string_view experts_key(const Json& json) {
  const bool second = !json.contains("num_experts") && json.contains("num_local_experts");
  return second ? "num_local_experts" : "num_experts";
}

DecoderConfig read(const Json& json) {
  auto config = read_decoder_config(json, {.kv_heads = 4});
  config.head_norms = true;
  config.moe = read_moe(
      json,
      config,
      {.experts = {experts_key(json), 128},
       .chosen = {"num_experts_per_tok", 8},
       .width = {"moe_intermediate_size", 768}}
  );
  config.moe.routing.score = read_softmax(json, "norm_topk_prob", false);
  set_sparse_layers(config, json);
  const bool slides = json_bool(json, "use_sliding_window", false);
  const int window = slides ? read_window(json, 4096) : 0;
  for (LayerConfig& layer : config.layers) {
    layer.window = window;
  }
  return config;
}

DecoderConfig read_vl(const Json& whole) {
  const Json json = text_config(whole, "qwen3_vl_moe");
  auto config =
      read_decoder_config(json, {.kv_heads = 16, .head_dim = 128, .rope = {.default_theta = 5e5}});
  config.head_norms = true;
  config.moe = read_moe(
      json,
      config,
      {.experts = {experts_key(json), 60},
       .chosen = {"num_experts_per_tok", 4},
       .width = {"moe_intermediate_size", 1408}}
  );
  config.moe.routing.score = kernels::RouterScore::kSoftmaxOfChosen;
  config.moe.names = kTransposed;
  set_sparse_layers(config, json);
  return config;
}

std::string_view mlx_scope(const Json&) {
  return "language_model.";
}

}  // namespace

Architecture qwen3_moe() {
  return {
      .read = read, .build_layer = pre_norm_layer, .tensors = {.own_format = gates_of_eight_bits}
  };
}

Architecture qwen3_vl_moe() {
  return {
      .read = read_vl,
      .build_layer = pre_norm_layer,
      .tensors =
          {.mlx_scope = mlx_scope, .experts = kTransposed, .own_format = gates_of_eight_bits},
  };
}

}  // namespace saker::models
