// SPDX-License-Identifier: Apache-2.0
// Nemotron-H: layers of one part each, behind a norm: Mamba-2, attention without rope, an MLP without
// a gate, or experts, which may read rows of a smaller size. A letter per layer says which, or a list
// of names.
#include "saker/base/error.h"
#include "saker/models/architecture.h"
#include "saker/models/mamba2_config.h"
#include "saker/models/moe_config.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace saker::models {
namespace {

constexpr std::string_view kPattern = "hybrid_override_pattern";

struct Part {
  char letter;
  std::array<std::string_view, 2> names;
  TokenMixing mixing;
  FeedForward feed_forward;
};

constexpr std::array kParts{
    Part{'M', {"mamba", "linear_attention"}, TokenMixing::kMamba2, FeedForward::kNone},
    Part{'*', {"attention", "full_attention"}, TokenMixing::kAttention, FeedForward::kNone},
    Part{'-', {"mlp", "mlp"}, TokenMixing::kNone, FeedForward::kMlp},
    Part{'E', {"moe", "moe"}, TokenMixing::kNone, FeedForward::kMlp},
};

const Part& part_named(std::string_view key, const Json& entry) {
  const auto name = entry.is_string() ? entry.get<std::string>() : std::string();
  const auto* const found = std::ranges::find_if(kParts, [&](const Part& part) {
    return (name.size() == 1 && name[0] == part.letter) || name == part.names[0] ||
           name == part.names[1];
  });
  require(
      found != kParts.end(),
      ErrorCode::kUnsupported,
      "[config] {} has {}, expected M (mamba), * (attention), - (mlp) or E (moe)",
      key,
      describe_json(entry)
  );
  return *found;
}

// The key of the list of layers.
std::string_view list_key(const Json& json) {
  for (const std::string_view key : {"layers_block_type", "layer_types"}) {
    if (json_has(json, key)) {
      return key;
    }
  }
  return kPattern;
}

std::vector<Part> read_parts(const Json& json) {
  const std::string_view key = json_has(json, kPattern) ? kPattern : list_key(json);
  Json list = json_has(json, key) ? *json.find(key) : Json();
  if (list.is_string()) {
    const auto letters = list.get<std::string>();
    list = Json::array();
    for (const char letter : letters) {
      list.push_back(std::string(1, letter));
    }
  }
  require(
      list.is_array() && !list.empty(),
      ErrorCode::kCorruptData,
      "[config] {} is {}, expected a letter for each layer",
      key,
      json_has(json, key) ? describe_json(*json.find(key)) : "missing"
  );
  std::vector<Part> parts;
  for (const Json& entry : list) {
    parts.push_back(part_named(key, entry));
  }
  const auto count = json_int(json, "num_hidden_layers", static_cast<std::int64_t>(parts.size()));
  require(
      std::cmp_equal(count, parts.size()),
      ErrorCode::kCorruptData,
      "[config] {} has {} layers, expected num_hidden_layers {}",
      key,
      parts.size(),
      count
  );
  const bool mixes = std::ranges::any_of(parts, [](const Part& part) {
    return part.mixing != TokenMixing::kNone;
  });
  require(mixes, ErrorCode::kUnsupported, "[config] {} has no M or *, expected one at least", key);
  return parts;
}

nn::Mamba2Options read_mamba(const Json& json, const DecoderConfig& config) {
  auto options = read_mamba2(
      json,
      config,
      {.heads = "mamba_num_heads",
       .head_dim = "mamba_head_dim",
       .state_dim = "ssm_state_size",
       .groups = "n_groups",
       .taps = "conv_kernel",
       .default_heads = 128,
       .default_head_dim = 64,
       .default_state_dim = 128,
       .default_groups = 8}
  );
  options.norm_groups = options.shape.groups;
  return options;
}

constexpr nn::MoeNames kExperts{
    .choice_bias = "gate.e_score_correction_bias",
    .stacked = {.up = "fc1", .down = "fc2"},
};

nn::MoeOptions read_experts(const Json& json, const DecoderConfig& config) {
  nn::MoeOptions moe = read_moe(
      json,
      config,
      {.experts = {"n_routed_experts", 8},
       .chosen = {"num_experts_per_tok", 2},
       .width = {"moe_intermediate_size", 7688}}
  );
  read_grouped_sigmoid(json, moe);
  moe.gated = false;
  moe.names = kExperts;
  if (read_count(json, {"n_shared_experts", 1}, 1 << 14) > 0) {
    moe.shared.intermediate =
        read_optional_width(json, {"moe_shared_expert_intermediate_size", 7688});
  }
  moe.latent = read_optional_width(json, {"moe_latent_size", 0});
  return moe;
}

DecoderConfig read(const Json& json) {
  const auto parts = read_parts(json);
  Json given = json;
  given["num_hidden_layers"] = parts.size();
  if (!json_has(json, "head_dim") && json_has(json, "attention_head_dim")) {
    given["head_dim"] = json["attention_head_dim"];
  }
  const auto activation = json_string(json, "mlp_hidden_act", "relu2");
  require(
      activation == "relu2",
      ErrorCode::kUnsupported,
      "[config] mlp_hidden_act is \"{}\", expected relu2",
      activation
  );
  given.erase("hidden_act");
  auto config = read_decoder_config(
      given,
      {.heads = 32,
       .kv_heads = 8,
       .head_dim = 128,
       .vocab_size = 131072,
       .intermediate = 21504,
       .context_length = 4096,
       .norm_eps = 1e-5,
       .norm_eps_key = "layer_norm_epsilon"}
  );
  config.activation = kernels::Activation::kRelu2;
  config.gated_mlp = false;
  config.feed_forward = "mixer";
  config.names.attention = "mixer";
  config.names.mamba2 = "mixer";
  config.names.norms = {"norm", "norm"};
  config.names.final_norm = "norm_f";
  set_rotating_layers(config, std::vector<bool>(parts.size(), false));
  for (std::size_t i = 0; i < parts.size(); ++i) {
    config.layers[i].mixing = parts[i].mixing;
    config.layers[i].feed_forward = parts[i].feed_forward;
    config.layers[i].experts = parts[i].letter == 'E';
  }
  if (std::ranges::find(parts, 'E', &Part::letter) != parts.end()) {
    config.moe = read_experts(json, config);
  }
  if (std::ranges::find(parts, TokenMixing::kMamba2, &Part::mixing) != parts.end()) {
    config.mamba2 = read_mamba(json, config);
  }
  return config;
}

bool is_kernel(std::string_view name) {
  return name.ends_with(".mixer.conv1d.weight");
}

using Kernels = KernelRules<is_kernel>;

}  // namespace

Architecture nemotron_h() {
  return {
      .read = read,
      .build_layer = pre_norm_layer,
      .tensors = {
          .is_unread = [](std::string_view name, const Json&) { return name.starts_with("mtp."); },
          .needs_sanitizing = Kernels::needs_sanitizing,
          .sanitized = Kernels::sanitized,
          .experts = kExperts,
          .keeps_dtype =
              [](std::string_view name) {
                return name.ends_with("A_log") || name.ends_with("e_score_correction_bias");
              },
          .stays_float = [](std::string_view module) { return module.ends_with("mixer.gate"); },
      },
  };
}

}  // namespace saker::models
