// SPDX-License-Identifier: Apache-2.0
// Hunyuan: Llama's layers with a norm over each head after the rotation. The base of its rope is
// raised once, by `alpha`, to reach longer contexts. With experts, each layer has a mixture for its
// MLP beside an expert that all tokens share.
#include "saker/base/error.h"
#include "saker/models/architecture.h"
#include "saker/models/moe_config.h"

#include <cmath>
#include <string>
#include <utility>

namespace saker::models {
namespace {

// The factor of the base; 1 without an `alpha`.
double base_factor(const Json& json, int head_dim) {
  for (const auto* key : {"rope_scaling", "rope_parameters"}) {
    const auto rope = json.find(key);
    if (rope != json.end() && rope->is_object() && json_has(*rope, "alpha")) {
      return std::pow(read_positive(*rope, "alpha", 1.0), head_dim / (head_dim - 2.0));
    }
  }
  return 1.0;
}

DecoderConfig read(const Json& json) {
  auto config = read_decoder_config(json, {.context_length = 2048, .norm_eps = 1e-5});
  config.ropes.front().theta *= base_factor(json, config.head_dim);
  config.head_norms = json_bool(json, "use_qk_norm", true);
  config.norms_follow_rope = config.head_norms;
  config.attention_names.query_norm = "query_layernorm";
  config.attention_names.key_norm = "key_layernorm";
  return config;
}

constexpr nn::MoeNames kNames{.router = "gate.wg"};

// A number that configurations may give per layer; all must be equal.
Json with_one_number(Json json, std::string_view key) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_array() || found->empty()) {
    return json;
  }
  const Json first = found->front();
  for (const Json& value : *found) {
    require(
        value == first,
        ErrorCode::kUnsupported,
        "[config] {} has {} beside {}, only one value for all layers can be run",
        key,
        describe_json(value),
        describe_json(first)
    );
  }
  json[std::string(key)] = first;
  return json;
}

DecoderConfig read_moe_layers(Json json) {
  for (const auto* key : {"num_experts", "moe_topk", "moe_intermediate_size"}) {
    json = with_one_number(std::move(json), key);
  }
  refuse_flag(json, "use_cla");
  auto config = read(json);
  config.moe = read_moe(
      json,
      config,
      {.experts = {"num_experts", 1},
       .chosen = {"moe_topk", 1},
       .width = {"moe_intermediate_size", config.intermediate}}
  );
  config.moe.routing.score = kernels::RouterScore::kSoftmaxOfChosen;
  config.moe.names = kNames;
  config.moe.shared = {.intermediate = config.intermediate, .name = "shared_mlp"};
  for (LayerConfig& layer : config.layers) {
    layer.experts = true;
  }
  return config;
}

}  // namespace

Architecture hunyuan_v1_dense() {
  return {read, pre_norm_layer};
}

Architecture hunyuan_v1_moe() {
  return {
      .read = [](const Json& json) { return read_moe_layers(json); },
      .build_layer = pre_norm_layer,
      .tensors = {.experts = kNames},
  };
}

}  // namespace saker::models
