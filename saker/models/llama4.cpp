// SPDX-License-Identifier: Apache-2.0
// Llama 4, text: three of four layers attend inside of chunks of the context, rotate neighbouring
// elements and may norm heads then; the others have the whole past, do not rotate, and scale queries
// by position. Layers have an MLP, or experts beside one that all tokens share. An expert's weight
// scales the row that it reads.
#include "saker/base/error.h"
#include "saker/models/architecture.h"
#include "saker/models/moe_config.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

namespace saker::models {
namespace {

constexpr nn::MoeNames kNames{
    .router = "router",
    .stacks = "experts",
    .fused_transposed = true,
};

// True for layers that rotate: their number in `no_rope_layers` is not 0.
std::vector<bool> read_rotating(const Json& json, std::size_t count) {
  constexpr std::string_view kKey = "no_rope_layers";
  const auto interval = read_size(json, "no_rope_layer_interval", 4, 1 << 20);
  const bool given = json_has(json, kKey) && !json.find(kKey)->empty();
  std::vector<bool> rotating;
  for (std::size_t i = 0; i < count; ++i) {
    rotating.push_back(static_cast<std::int64_t>(i + 1) % interval != 0);
  }
  if (!given) {
    return rotating;
  }
  const Json& list = *json.find(kKey);
  require(
      list.is_array() && list.size() == count &&
          std::ranges::all_of(list, [](const Json& flag) { return flag == 0 || flag == 1; }),
      ErrorCode::kCorruptData,
      "[config] {} is {}, expected 0 or 1 for each of num_hidden_layers {}",
      kKey,
      describe_json(list),
      count
  );
  for (std::size_t i = 0; i < count; ++i) {
    rotating[i] = list[i] == 1;
  }
  return rotating;
}

void set_chunks(DecoderConfig& config, const Json& json, const std::vector<bool>& rotating) {
  const bool none =
      json.contains("attention_chunk_size") && !json_has(json, "attention_chunk_size");
  const auto size =
      none
          ? 0
          : read_size(json, "attention_chunk_size", 8192, std::numeric_limits<std::int32_t>::max());
  const LayerPattern never = [](const Json&, int) { return false; };
  auto chunked =
      read_typed_layers(json, static_cast<int>(config.layers.size()), "chunked_attention", never);
  if (!json_has(json, "layer_types")) {
    chunked = size > 0 ? rotating : chunked;
  }
  set_windows(config, chunked, static_cast<int>(size));
  for (LayerConfig& layer : config.layers) {
    layer.chunked = layer.window > 0;
  }
}

void add_experts(DecoderConfig& config, const Json& json) {
  config.moe = read_moe(
      json,
      config,
      {.experts = {"num_local_experts", 16},
       .chosen = {"num_experts_per_tok", 1},
       .width = {"intermediate_size", 8192}}
  );
  config.moe.routing.score = kernels::RouterScore::kSigmoid;
  config.moe.weighted_inputs = true;
  config.moe.names = kNames;
  config.moe.shared = {.intermediate = config.moe.intermediate, .name = "shared_expert"};
  const auto step = read_size(json, "interleave_moe_layer_step", 1, 1 << 20);
  for (std::size_t i = 0; i < config.layers.size(); ++i) {
    config.layers[i].experts = static_cast<std::int64_t>(i + 1) % step == 0;
  }
  if (!json_has(json, "moe_layers")) {
    return;
  }
  const Json& listed = *json.find("moe_layers");
  require(
      listed.is_array() &&
          std::ranges::all_of(listed, [](const Json& x) { return x.is_number_integer(); }),
      ErrorCode::kCorruptData,
      "[config] moe_layers is {}, expected layer indices",
      describe_json(listed)
  );
  for (std::size_t i = 0; i < config.layers.size(); ++i) {
    config.layers[i].experts = std::ranges::find(listed, Json(i)) != listed.end();
  }
}

// `attn_temperature_tuning` is a flag, or a number of which 0 is none.
void read_temperature(const Json& json, DecoderConfig& config) {
  constexpr std::string_view kKey = "attn_temperature_tuning";
  const bool is_number = json_has(json, kKey) && json.find(kKey)->is_number_integer();
  if (is_number ? json_int(json, kKey, 0) == 0 : !json_bool(json, kKey, true)) {
    return;
  }
  config.scales_unrotated = true;
  config.query_scaling = {
      .beta = read_positive(json, "attn_scale", 0.1),
      .period = read_size(json, "floor_scale", 8192, std::int64_t{1} << 40),
      .shift = 1,
  };
}

DecoderConfig read(const Json& whole) {
  const auto json = text_config(whole, "llama4");
  Json given = json;
  given["intermediate_size"] = read_size(json, "intermediate_size_mlp", 16384, 1 << 24);
  auto config = read_decoder_config(
      given,
      {.kv_heads = 8, .context_length = 131072, .rope = {.default_theta = 5e5}, .norm_eps = 1e-5}
  );
  config.ropes.front().pairs = kernels::RopePairs::kNeighbours;
  config.feed_forward = "feed_forward";
  config.unit_head_norms = json_bool(json, "use_qk_norm", true);
  const auto rotating = read_rotating(json, config.layers.size());
  set_rotating_layers(config, rotating);
  set_chunks(config, json, rotating);
  read_temperature(json, config);
  add_experts(config, json);
  return config;
}

// mlx-lm has the text part in a scope of its own.
std::string_view mlx_scope(const Json& config) {
  return json_string(config, "model_type", "") == "llama4" ? "language_model." : "";
}

}  // namespace

Architecture llama4() {
  return {
      .read = read,
      .build_layer = pre_norm_layer,
      .tensors = {.mlx_scope = mlx_scope, .experts = kNames},
  };
}

}  // namespace saker::models
