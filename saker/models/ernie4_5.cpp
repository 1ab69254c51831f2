// SPDX-License-Identifier: Apache-2.0
// ERNIE 4.5: Llama's layers that rotate neighbouring elements. With experts, some layers have a
// mixture for their MLP. Its router chooses by softmax plus biases, which converted checkpoints lack,
// beside an expert that all tokens share.
#include "saker/base/error.h"
#include "saker/models/architecture.h"
#include "saker/models/moe_config.h"

#include <cstddef>
#include <cstdint>

namespace saker::models {
namespace {

DecoderConfig read(const Json& json) {
  auto config = read_decoder_config(
      json,
      {.kv_heads = 2,
       .head_dim = 128,
       .context_length = 131072,
       .rope = {.default_theta = 5e5},
       .norm_eps = 1e-5}
  );
  config.ropes.front().pairs = kernels::RopePairs::kNeighbours;
  return config;
}

constexpr nn::MoeNames kNames{
    .choice_bias = "moe_statics.e_score_correction_bias",
    .choice_bias_may_lack = true,
};

// Every `moe_layer_interval`-th layer from one to another.
void set_expert_layers(DecoderConfig& config, const Json& json) {
  const auto count = static_cast<std::int64_t>(config.layers.size());
  const auto start = read_count(json, {"moe_layer_start_index", 1}, count);
  const auto interval = read_size(json, "moe_layer_interval", 1, 1 << 20);
  const auto given = json_has(json, "moe_layer_end_index")
                         ? json_int_in(json, "moe_layer_end_index", -1, 1 << 20)
                         : -1;
  const std::int64_t end = given < 0 ? count - 1 : given;
  for (std::int64_t layer = start; layer < count && layer <= end; ++layer) {
    config.layers[static_cast<std::size_t>(layer)].experts = (layer + 1) % interval == 0;
  }
}

DecoderConfig read_moe_layers(const Json& json) {
  auto config = read_decoder_config(
      json,
      {.kv_heads = 4, .context_length = 131072, .rope = {.default_theta = 5e5}, .norm_eps = 1e-5}
  );
  config.ropes.front().pairs = kernels::RopePairs::kNeighbours;
  config.moe = read_moe(
      json,
      config,
      {.experts = {"moe_num_experts", 64},
       .chosen = {"moe_k", 6},
       .width = {"moe_intermediate_size", 1536}}
  );
  config.moe.routing.score = kernels::RouterScore::kSoftmax;
  config.moe.routing.normalized = true;
  config.moe.names = kNames;
  config.moe.shared.intermediate =
      read_shared_width(json, {"moe_num_shared_experts", 2}, config.moe);
  set_expert_layers(config, json);
  return config;
}

bool is_unread(std::string_view name, const Json&) {
  return name.find("mtp_") != std::string_view::npos;
}

}  // namespace

Architecture ernie4_5() {
  return {read, pre_norm_layer};
}

Architecture ernie4_5_moe() {
  return {
      .read = read_moe_layers,
      .build_layer = pre_norm_layer,
      .tensors = {.is_unread = is_unread, .experts = kNames, .keeps_dtype = is_choice_bias},
  };
}

}  // namespace saker::models
