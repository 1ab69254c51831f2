// SPDX-License-Identifier: Apache-2.0
// gpt-oss: llama's layers with attention sinks and experts, whose router, gates, ups and down
// projections have biases. Every second layer slides, from the first one on.
#include "saker/base/error.h"
#include "saker/models/architecture.h"
#include "saker/models/moe_config.h"

#include <array>
#include <optional>
#include <string_view>

namespace saker::models {
namespace {

// The activation's constants, which no published model has otherwise.
void check_activation(const Json& json) {
  struct Constant {
    std::string_view key;
    double value;
  };

  constexpr std::array<Constant, 2> kConstants{{{"swiglu_alpha", 1.702}, {"swiglu_limit", 7.0}}};
  for (const auto& [key, value] : kConstants) {
    const double given = read_positive(json, key, value);
    require(
        given == value, ErrorCode::kUnsupported, "[config] {} is {}, expected {}", key, given, value
    );
  }
}

constexpr nn::MoeNames kExpertNames{
    .router = "router",
    .stacks = "experts",
    .fused_transposed = true,
    .fused_in_turns = true,
};

// The rope of a configuration that has none.
nn::RopeOptions default_rope(double theta) {
  nn::RopeOptions rope;
  rope.kind = nn::RopeKind::kYarn;
  rope.theta = theta;
  rope.factor = 32.0;
  rope.original_context = 4096.0;
  rope.truncate = false;
  rope.attention_factor = 1.3465735902799727;  // 1 + ln(32) / 10
  return rope;
}

DecoderConfig read(const Json& json) {
  constexpr double kTheta = 150000.0;
  auto config = read_decoder_config(
      json,
      {.heads = 64,
       .kv_heads = 8,
       .head_dim = 64,
       .vocab_size = 201088,
       .context_length = 131072,
       .rope = {.default_theta = kTheta},
       .norm_eps = 1e-5}
  );
  if (!json_has(json, "rope_parameters") && !json_has(json, "rope_scaling")) {
    config.ropes.front() = default_rope(config.ropes.front().theta);
  }
  const LayerPattern slides = [](const Json&, int layer) { return layer % 2 == 0; };
  const auto sliding = read_sliding_layers(json, static_cast<int>(config.layers.size()), slides);
  set_windows(config, sliding, read_window(json, 128));
  config.attention_sinks = true;
  config.moe = read_moe(
      json,
      config,
      {.experts = {"num_local_experts", 128},
       .chosen = {"num_experts_per_tok", 4},
       .width = {"intermediate_size"}}
  );
  check_activation(json);
  config.moe.routing.score = kernels::RouterScore::kSoftmaxOfChosen;
  config.moe.activation = kernels::Activation::kSwigluOai;
  config.moe.names = kExpertNames;
  for (LayerConfig& layer : config.layers) {
    layer.experts = true;
  }
  return config;
}

// Routers choose, so they keep 8 bits.
std::optional<kernels::WeightFormat> own_format(std::string_view module) {
  return module.ends_with("router") ? std::optional(kEightBits) : std::nullopt;
}

}  // namespace

Architecture gpt_oss() {
  return {
      .read = read,
      .build_layer = pre_norm_layer,
      .tensors = {.experts = kExpertNames, .own_format = own_format},
  };
}

}  // namespace saker::models
