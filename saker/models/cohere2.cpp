// SPDX-License-Identifier: Apache-2.0
// Command R7B and A: attention and MLP read the same rows, normed by a LayerNorm. Three of four layers
// slide and rotate neighbouring elements; the others have the whole past and do not rotate. With
// experts, layers from a number on have a mixture for their MLP, averaged with an expert that all
// tokens share. Layers before them rotate, if their pattern says that all have the whole past.
#include "saker/base/error.h"
#include "saker/models/architecture.h"
#include "saker/models/moe_config.h"

#include <algorithm>
#include <string>
#include <vector>

namespace saker::models {
namespace {

bool slides(const Json& json, int layer) {
  return (layer + 1) % read_size(json, "sliding_window_pattern", 4, 1 << 24) != 0;
}

DecoderConfig read_layers(const Json& json, kernels::NormKind norm) {
  const bool is_layer_norm = norm == kernels::NormKind::kLayer;
  auto config = read_decoder_config(
      json,
      {.context_length = 8192,
       .norm_eps = 1e-5,
       .norm_eps_key = is_layer_norm ? "layer_norm_eps" : "rms_norm_eps"}
  );
  config.norm.kind = norm;
  config.logit_scale = static_cast<float>(read_positive(json, "logit_scale", 0.0625));
  config.ropes.front().pairs = kernels::RopePairs::kNeighbours;
  refuse_flag(json, "use_qk_norm");
  const auto sliding = read_sliding_layers(json, static_cast<int>(config.layers.size()), slides);
  set_windows(config, sliding, read_window(json, 4096));
  set_rotating_layers(config, sliding);
  return config;
}

DecoderConfig read(const Json& json) {
  return read_layers(json, kernels::NormKind::kLayer);
}

// The number of dense layers at the start; `mlp_layer_types` says the same.
int read_dense_layers(const Json& json, int layer_count) {
  const auto sparse = read_sparse_types(json, static_cast<std::size_t>(layer_count));
  if (!sparse) {
    return static_cast<int>(read_count(json, {"first_k_dense_replace", 0}, layer_count));
  }
  require(
      std::ranges::is_sorted(*sparse),
      ErrorCode::kUnsupported,
      "[config] mlp_layer_types is {}, expected \"dense\" and then \"sparse\"",
      describe_json(*json.find("mlp_layer_types"))
  );
  return static_cast<int>(std::ranges::count(*sparse, false));
}

void read_router(const Json& json, nn::MoeOptions& moe) {
  const auto name = json_string(json, "expert_selection_fn", "softmax");
  require(
      name == "softmax" || name == "sigmoid",
      ErrorCode::kUnsupported,
      "[config] expert_selection_fn is \"{}\", expected softmax or sigmoid",
      name
  );
  const bool is_softmax = name == "softmax";
  moe.routing.score =
      is_softmax ? kernels::RouterScore::kSoftmaxOfChosen : kernels::RouterScore::kSigmoid;
  moe.routing.normalized = !is_softmax && json_bool(json, "norm_topk_prob", true);
  moe.shared.intermediate = read_shared_width(json, {"num_shared_experts", 0}, moe);
  const auto way = json_string(json, "shared_expert_combination_strategy", "average");
  require(
      way == "average" || way == "sum",
      ErrorCode::kUnsupported,
      "[config] shared_expert_combination_strategy is \"{}\", expected average or sum",
      way
  );
  moe.shared.averaged = way == "average";
}

DecoderConfig read_moe_layers(const Json& json) {
  const bool has_rms_norms = json_has(json, "rms_norm_eps");
  auto config =
      read_layers(json, has_rms_norms ? kernels::NormKind::kRms : kernels::NormKind::kLayer);
  config.moe = read_moe(
      json,
      config,
      {.experts = {"num_experts", 8},
       .chosen = {"num_experts_per_tok", 2},
       .width = {"intermediate_size"}}
  );
  read_router(json, config.moe);
  const auto layers = static_cast<int>(config.layers.size());
  const int dense = read_dense_layers(json, layers);
  const auto period = read_size(json, "prefix_dense_sliding_window_pattern", 1, 1 << 20);
  const int width = read_optional_width(json, {"prefix_dense_intermediate_size", 0});
  std::vector<bool> sliding;
  for (int layer = 0; layer < layers; ++layer) {
    const bool is_dense = layer < dense;
    sliding.push_back(is_dense ? (layer + 1) % period != 0 : slides(json, layer - dense));
    LayerConfig& own = config.layers[static_cast<std::size_t>(layer)];
    own.experts = !is_dense;
    own.intermediate = width;
  }
  if (json_has(json, "layer_types")) {
    sliding = read_sliding_layers(json, layers, slides);
  }
  set_windows(config, sliding, read_window(json, 4096));
  for (int layer = 0; layer < layers; ++layer) {
    const bool rotates = sliding[static_cast<std::size_t>(layer)] || (layer < dense && period == 1);
    config.layers[static_cast<std::size_t>(layer)].rope = rotates ? 0 : 1;
  }
  return config;
}

}  // namespace

Architecture cohere2() {
  return {read, parallel_layer};
}

Architecture cohere2_moe() {
  return {read_moe_layers, parallel_layer};
}

}  // namespace saker::models
