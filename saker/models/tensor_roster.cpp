// SPDX-License-Identifier: Apache-2.0
#include "saker/models/tensor_roster.h"

#include "saker/base/numbered_name.h"
#include "saker/models/decoder_config.h"
#include "saker/models/mtp.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ranges>
#include <string>
#include <string_view>

namespace saker::models {
namespace {

constexpr int kNoColumns = 0;
// A tensor by itself: its whole name stands for a module.
constexpr int kLoneTensor = -1;

using Modules = std::map<std::string, int, std::less<>>;

class LayerModules {
 public:
  LayerModules(Modules& modules, std::string prefix, const DecoderConfig& config)
      : modules_(modules), prefix_(std::move(prefix)), config_(config) {}

  void add(const LayerConfig& layer, const RosterOptions& options) {
    put("input_layernorm", kNoColumns);
    put("post_attention_layernorm", kNoColumns);
    if (options.output_norms) {
      put("pre_feedforward_layernorm", kNoColumns);
      put("post_feedforward_layernorm", kNoColumns);
    }
    if (options.layer_scalars) {
      put("layer_scalar", kLoneTensor);
    }
    if (config_.layer_input_size > 0) {
      put("per_layer_input_gate", config_.hidden);
      put("per_layer_projection", config_.layer_input_size);
      put("post_per_layer_input_norm", kNoColumns);
    }
    layer.linear ? add_delta() : add_attention(layer);
    layer.experts ? add_experts() : add_mlp(layer);
  }

 private:
  void put(std::string_view name, int columns) {
    modules_.emplace(fmt::format("{}{}", prefix_, name), columns);
  }

  void add_attention(const LayerConfig& layer) {
    put("self_attn.q_proj", config_.hidden);
    put("self_attn.o_proj", config_.heads * config_.head_dim_of(layer));
    if (config_.head_norms) {
      put("self_attn.q_norm", kNoColumns);
    }
    if (layer.shares_rows_of) {
      return;
    }
    put("self_attn.k_proj", config_.hidden);
    if (!layer.keys_are_values) {
      put("self_attn.v_proj", config_.hidden);
    }
    if (config_.head_norms) {
      put("self_attn.k_norm", kNoColumns);
    }
  }

  void add_delta() {
    for (const std::string_view name : {"in_proj_qkv", "in_proj_z", "in_proj_a", "in_proj_b"}) {
      put(fmt::format("linear_attn.{}", name), config_.hidden);
    }
    put("linear_attn.out_proj", config_.delta.shape.outputs());
    put("linear_attn.conv1d", kNoColumns);
    put("linear_attn.norm", kNoColumns);
    put("linear_attn.A_log", kLoneTensor);
    put("linear_attn.dt_bias", kLoneTensor);
  }

  void add_mlp(const LayerConfig& layer) {
    put("mlp.gate_proj", config_.hidden);
    put("mlp.up_proj", config_.hidden);
    put("mlp.down_proj", layer.intermediate > 0 ? layer.intermediate : config_.intermediate);
  }

  void add_experts() {
    put("mlp.gate", config_.hidden);
    put("mlp.switch_mlp.gate_proj", config_.hidden);
    put("mlp.switch_mlp.up_proj", config_.hidden);
    put("mlp.switch_mlp.down_proj", config_.moe.intermediate);
  }

  Modules& modules_;
  std::string prefix_;
  const DecoderConfig& config_;
};

void add_mtp(Modules& modules, const DecoderConfig& config) {
  const auto attends = [](const LayerConfig& layer) {
    return !layer.linear && !layer.shares_rows_of;
  };
  const auto found = std::ranges::find_if(config.layers | std::views::reverse, attends);
  if (found == config.layers.rend()) {
    return;
  }
  modules.emplace("mtp.fc", 2 * config.hidden);
  for (const std::string_view name : {"pre_fc_norm_embedding", "pre_fc_norm_hidden", "norm"}) {
    modules.emplace(fmt::format("mtp.{}", name), kNoColumns);
  }
  for (int i = 0; i < kMaxMtpLayers; ++i) {
    LayerModules(modules, fmt::format("mtp.layers.{}.", i), config).add(*found, {});
  }
}

std::string_view without_scopes(std::string_view name) {
  constexpr std::array<std::string_view, 2> kScopes{"model.", "language_model."};
  for (bool stripped = true; stripped;) {
    stripped = false;
    for (const std::string_view scope : kScopes) {
      if (name.starts_with(scope)) {
        name.remove_prefix(scope.size());
        stripped = true;
      }
    }
  }
  return name;
}

// "layers.0.mlp.experts.3.up_proj" is a part of "layers.0.mlp.switch_mlp.up_proj".
std::string stacked_name(std::string_view name) {
  constexpr std::string_view kExperts = ".mlp.experts.";
  const auto at = name.find(kExperts);
  if (at == std::string_view::npos) {
    return std::string(name);
  }
  const std::string_view rest = name.substr(at + kExperts.size());
  const auto digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
  return fmt::format("{}.mlp.switch_mlp{}", name.substr(0, at), rest.substr(digits));
}

}  // namespace

TensorRoster::TensorRoster(const DecoderConfig& config, const RosterOptions& options) {
  modules_.emplace("embed_tokens", config.hidden);
  modules_.emplace("norm", kNoColumns);
  if (config.head != HeadChoice::kTied) {
    modules_.emplace("lm_head", config.hidden);
  }
  if (config.layer_input_size > 0) {
    const auto layers = static_cast<int>(config.layers.size());
    modules_.emplace("embed_tokens_per_layer", layers * config.layer_input_size);
    modules_.emplace("per_layer_model_projection", config.hidden);
    modules_.emplace("per_layer_projection_norm", kNoColumns);
  }
  for (std::size_t i = 0; i < config.layers.size(); ++i) {
    LayerModules(modules_, fmt::format("layers.{}.", i), config).add(config.layers[i], options);
  }
  if (options.mtp_head) {
    add_mtp(modules_, config);
  }
}

bool TensorRoster::has(std::string_view tensor) const {
  const std::string name = stacked_name(without_scopes(tensor));
  if (const auto lone = modules_.find(name); lone != modules_.end()) {
    return lone->second == kLoneTensor;
  }
  const auto dot = name.rfind('.');
  const auto module = modules_.find(name.substr(0, dot));
  if (dot == std::string::npos || module == modules_.end()) {
    return false;
  }
  const std::string part = name.substr(dot + 1);
  return part == "weight" ||
         (module->second > 0 && (part == "scales" || part == "biases" || part == "bias"));
}

std::optional<int> TensorRoster::columns(std::string_view module) const {
  const auto found = modules_.find(stacked_name(without_scopes(module)));
  return found != modules_.end() && found->second > 0 ? std::optional(found->second) : std::nullopt;
}

}  // namespace saker::models
