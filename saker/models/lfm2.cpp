// SPDX-License-Identifier: Apache-2.0
// LFM2: short convolutions between gates in most layers, attention with norms over heads in the
// others. The final norm lies beside the embedding, whose transpose is the head. Configurations may
// give the MLP's width before it is adjusted. LFM2 with experts has them in all layers but the
// first ones; MLX's models have usual names of MLPs.
#include "saker/base/error.h"
#include "saker/models/architecture.h"
#include "saker/models/mamba2_config.h"
#include "saker/models/moe_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace saker::models {
namespace {

constexpr std::int64_t kMaxWidth = 1 << 24;

// The MLP's width as the tensors have it.
std::int64_t mlp_width(const Json& json) {
  const auto* key = json_has(json, "block_ff_dim") ? "block_ff_dim" : "intermediate_size";
  const auto given = read_size(json, key, 12288, kMaxWidth);
  if (!json_bool(json, "block_auto_adjust_ff_dim", true)) {
    return given;
  }
  const auto multiple = read_size(json, "block_multiple_of", 256, kMaxWidth);
  const bool unscaled = json.contains("block_ffn_dim_multiplier") &&
                        !json_has(json, "block_ffn_dim_multiplier");  // A null.
  const double factor = unscaled ? 1.0 : read_positive(json, "block_ffn_dim_multiplier", 1.0);
  const std::int64_t whole = 2 * given / 3;
  const auto two_thirds = static_cast<double>(whole);
  const double scaled = std::floor(factor * two_thirds);
  require(
      scaled >= 1.0 && scaled + static_cast<double>(multiple) <= static_cast<double>(kMaxWidth),
      ErrorCode::kUnsupported,
      "[config] {} {} times 2/3 times block_ffn_dim_multiplier {} is not in [1, {}]",
      key,
      given,
      factor,
      kMaxWidth
  );
  const auto width = static_cast<std::int64_t>(scaled);
  return (width + multiple - 1) / multiple * multiple;
}

// Without any list all layers attend.
bool is_convolution(const Json& json, int layer) {
  if (!json_has(json, "full_attn_idxs")) {
    return false;
  }
  const Json& full = *json.find("full_attn_idxs");
  require(
      full.is_array() &&
          std::ranges::all_of(full, [](const Json& x) { return x.is_number_integer(); }),
      ErrorCode::kCorruptData,
      "[config] full_attn_idxs is {}, expected layer indices",
      describe_json(full)
  );
  return std::ranges::find(full, Json(layer)) == full.end();
}

int read_taps(const Json& json) {
  const auto taps = read_size(json, "conv_L_cache", 3, kernels::kMaxConvolutionTaps);
  require(
      taps > 1, ErrorCode::kUnsupported, "[config] conv_L_cache is {}, expected at least 2", taps
  );
  return static_cast<int>(taps);
}

constexpr nn::MlpNames kPublishedMlp{.gate = "w1", .up = "w3", .down = "w2"};

// `width`: the MLP's.
DecoderConfig read_layers(const Json& json, std::int64_t width) {
  Json given = json;
  given["intermediate_size"] = width;
  auto config = read_decoder_config(
      given,
      {.heads = 32,
       .kv_heads = 8,
       .vocab_size = 65536,
       .context_length = 128000,
       .rope = {.default_theta = 1e6},
       .norm_eps = 1e-5,
       .norm_eps_key = "norm_eps"}
  );
  const auto* tied = json_has(json, "tie_embedding") ? "tie_embedding" : "tie_word_embeddings";
  config.head = json_bool(json, tied, true) ? HeadChoice::kTied : HeadChoice::kUntied;
  config.head_norms = true;
  config.attention_names = {"q_layernorm", "k_layernorm", "out_proj"};
  config.names.norms = {"operator_norm", "ffn_norm"};
  config.names.final_norm = "embedding_norm";
  config.feed_forward = "feed_forward";
  config.mlp_names = kPublishedMlp;
  config.short_convolution = {config.hidden, read_taps(json)};
  const auto convolutions =
      read_typed_layers(json, static_cast<int>(config.layers.size()), "conv", is_convolution);
  for (std::size_t i = 0; i < convolutions.size(); ++i) {
    config.layers[i].mixing =
        convolutions[i] ? TokenMixing::kShortConvolution : TokenMixing::kAttention;
  }
  return config;
}

DecoderConfig read(const Json& json) {
  return read_layers(json, mlp_width(json));
}

constexpr nn::MoeNames kExperts{.choice_bias = "expert_bias", .single = kPublishedMlp};

DecoderConfig read_with_experts(const Json& json) {
  auto config = read_layers(json, read_size(json, "intermediate_size", 7168, kMaxWidth));
  config.mlx_feed_forward = config.feed_forward;
  config.moe = read_moe(
      json,
      config,
      {.experts = {"num_experts", 32},
       .chosen = {"num_experts_per_tok", 4},
       .width = {"moe_intermediate_size", 1792}}
  );
  config.moe.names = kExperts;
  if (!json_bool(json, "use_expert_bias", true)) {
    config.moe.names.choice_bias = {};
  }
  kernels::RouterOptions& routing = config.moe.routing;
  routing.score = kernels::RouterScore::kSigmoid;
  routing.normalized = json_bool(json, "norm_topk_prob", true);
  routing.epsilon = 1e-6F;
  routing.scale = static_cast<float>(read_positive(json, "routed_scaling_factor", 1.0));
  set_layers_after(config, json, {"num_dense_layers", 2});
  return config;
}

// MLX's models.
void adjust(DecoderConfig& config, const nn::Weights& body) {
  const auto layers = body / "layers";
  for (std::size_t i = 0; i < config.layers.size(); ++i) {
    if ((layers / fmt::to_string(i) / config.feed_forward / "gate_proj").has("weight")) {
      config.mlp_names = {};
    }
  }
}

// Dense layers of MLX's models with experts have usual names.
std::vector<std::string> mlx_names(std::string_view name, const Json&) {
  constexpr nn::MlpNames kUsual;
  for (const auto& [published, usual] :
       {std::pair(kPublishedMlp.gate, kUsual.gate),
        std::pair(kPublishedMlp.up, kUsual.up),
        std::pair(kPublishedMlp.down, kUsual.down)}) {
    const std::string scope = fmt::format(".feed_forward.{}.", published);
    if (const auto at = name.find(scope); at != std::string_view::npos) {
      const auto leaf = name.substr(at + scope.size());
      return {fmt::format("{}.feed_forward.{}.{}", name.substr(0, at), usual, leaf)};
    }
  }
  return {std::string(name)};
}

std::optional<kernels::WeightFormat> own_format(std::string_view module) {
  return module.ends_with("feed_forward.gate") ? std::optional(kEightBits) : std::nullopt;
}

bool is_kernel(std::string_view name) {
  return name.ends_with(".conv.conv.weight");
}

using Kernels = KernelRules<is_kernel>;

}  // namespace

Architecture lfm2() {
  return {
      .read = read,
      .build_layer = pre_norm_layer,
      .tensors = {.needs_sanitizing = Kernels::needs_sanitizing, .sanitized = Kernels::sanitized},
  };
}

Architecture lfm2_moe() {
  return {
      .read = read_with_experts,
      .build_layer = pre_norm_layer,
      .adjust = adjust,
      .tensors =
          {.needs_sanitizing = Kernels::needs_sanitizing,
           .sanitized = Kernels::sanitized,
           .mlx_names = mlx_names,
           .experts = kExperts,
           .keeps_dtype = [](std::string_view name) { return name.ends_with("expert_bias"); },
           .own_format = own_format},
  };
}

}  // namespace saker::models
