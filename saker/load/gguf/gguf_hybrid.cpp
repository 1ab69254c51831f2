// SPDX-License-Identifier: Apache-2.0
#include "saker/base/numbered_name.h"
#include "saker/load/gguf/gguf_linear_attention.h"
#include "saker/load/gguf/gguf_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace saker::load::gguf {
namespace {

constexpr std::array<ModuleNames, 14> kConvolutionModules = {{
    {"attn_norm", "operator_norm"},
    {"ffn_norm", "ffn_norm"},
    {"shortconv.in_proj", "conv.in_proj"},
    {"shortconv.out_proj", "conv.out_proj"},
    {"attn_output", "self_attn.out_proj"},
    {"attn_q_norm", "self_attn.q_layernorm"},
    {"attn_k_norm", "self_attn.k_layernorm"},
    {"ffn_gate", "feed_forward.w1"},
    {"ffn_up", "feed_forward.w3"},
    {"ffn_down", "feed_forward.w2"},
    {"ffn_gate_inp", "feed_forward.gate"},
    {"ffn_gate_exps", "feed_forward.switch_mlp.gate_proj"},
    {"ffn_up_exps", "feed_forward.switch_mlp.up_proj"},
    {"ffn_down_exps", "feed_forward.switch_mlp.down_proj"},
}};

constexpr std::array<ModuleNames, 14> kSinglePartModules = {{
    {"attn_norm", "norm"},
    {"attn_q", "mixer.q_proj"},
    {"attn_k", "mixer.k_proj"},
    {"attn_v", "mixer.v_proj"},
    {"attn_output", "mixer.o_proj"},
    {"ffn_up", "mixer.up_proj"},
    {"ffn_down", "mixer.down_proj"},
    {"ffn_gate_inp", "mixer.gate"},
    {"ffn_up_exps", "mixer.switch_mlp.fc1"},
    {"ffn_down_exps", "mixer.switch_mlp.fc2"},
    {"ffn_up_shexp", "mixer.shared_experts.up_proj"},
    {"ffn_down_shexp", "mixer.shared_experts.down_proj"},
    {"ffn_latent_down", "mixer.fc1_latent_proj"},
    {"ffn_latent_up", "mixer.fc2_latent_proj"},
}};

constexpr std::array<ModuleNames, 2> kStateSpaceModules = {{
    {"ssm_in", "in_proj"},
    {"ssm_out", "out_proj"},
}};

constexpr std::string_view kChoiceBias = "exp_probs_b.bias";

// A tensor that is not as in a folder.
struct OwnTensor {
  std::string_view gguf;
  TensorRole role;  // Its name: behind the layer's part.
};

const std::array<OwnTensor, 6>& state_space_tensors() {
  static const std::array<OwnTensor, 6> tensors = {{
      {"ssm_conv1d.weight", {.name = "conv1d.weight", .ends_in_one = true}},
      {"ssm_conv1d.bias", {.name = "conv1d.bias"}},
      {"ssm_dt.bias", {.name = "dt_bias"}},
      {"ssm_a", {.name = "A_log", .is_decay = true, .is_flat = true}},
      {"ssm_d", {.name = "D", .is_flat = true}},
      {"ssm_norm.weight", {.name = "norm.weight", .is_flat = true}},
  }};
  return tensors;
}

// The folder's name of a module's tensor; empty for others.
std::string module_tensor(std::span<const ModuleNames> modules, std::string_view name) {
  const auto dot = name.rfind('.');
  const auto found = std::ranges::find(modules, name.substr(0, dot), &ModuleNames::gguf);
  return found != modules.end() && dot != std::string_view::npos
             ? fmt::format("{}{}", found->ours, name.substr(dot))
             : std::string();
}

std::optional<TensorRole> convolution_role(std::string_view name) {
  if (name == "shortconv.conv.weight") {
    return TensorRole{.name = "conv.conv.weight", .ends_in_one = true};
  }
  if (name == "shortconv.conv.bias") {
    return TensorRole{.name = "conv.conv.bias"};
  }
  if (name == kChoiceBias) {
    return TensorRole{.name = "feed_forward.expert_bias"};
  }
  std::string ours = module_tensor(kConvolutionModules, name);
  return ours.empty() ? std::nullopt : std::optional(TensorRole{.name = std::move(ours)});
}

// `part`: the scope of a state space in its layer.
std::optional<TensorRole> state_space_role(std::string_view part, std::string_view name) {
  TensorRole role;
  const auto& tensors = state_space_tensors();
  if (const auto* found = std::ranges::find(tensors, name, &OwnTensor::gguf);
      found != tensors.end()) {
    role = found->role;
  } else {
    role.name = module_tensor(kStateSpaceModules, name);
  }
  if (role.name.empty()) {
    return std::nullopt;
  }
  role.name = fmt::format("{}.{}", part, role.name);
  return role;
}

std::optional<TensorRole> single_part_role(std::string_view name) {
  if (auto role = state_space_role("mixer", name)) {
    return role;
  }
  if (name == kChoiceBias) {
    return TensorRole{.name = "mixer.gate.e_score_correction_bias"};
  }
  std::string ours = module_tensor(kSinglePartModules, name);
  return ours.empty() ? std::nullopt : std::optional(TensorRole{.name = std::move(ours)});
}

std::optional<TensorRole> layer_role(LayerKinds kinds, std::string_view name) {
  switch (kinds) {
    case LayerKinds::kConvolutions:
      return convolution_role(name);
    case LayerKinds::kStateSpaces:
      return state_space_role("mamba", name);
    case LayerKinds::kSingleParts:
      return single_part_role(name);
    case LayerKinds::kAlike:
      break;
  }
  return std::nullopt;
}

// Keys and values of each layer; 0: it has none.
std::vector<std::int64_t> kv_heads_by_layer(const Keys& keys, std::int64_t layers) {
  auto counts = keys.by_layer("attention.head_count_kv", layers);
  if (counts.empty()) {
    counts.assign(static_cast<std::size_t>(layers), head_count(keys));
  }
  return counts;
}

struct StateSpaceKeys {
  const char* heads;
  const char* head_dim;
  const char* state_dim;
  const char* groups;
  const char* taps;
};

void add_state_space(const Keys& keys, const StateSpaceKeys& ours, Json& config) {
  const std::int64_t heads = keys.required_size("ssm.time_step_rank");
  const std::int64_t inner = keys.required("ssm.inner_size");
  keys.expect(
      inner > 0 && inner % heads == 0,
      "ssm.inner_size",
      fmt::format("{}", inner),
      fmt::format("a multiple of the {} heads", heads)
  );
  config[ours.heads] = heads;
  config[ours.head_dim] = keys.checked_size("ssm.inner_size", inner / heads);
  config[ours.state_dim] = keys.required_size("ssm.state_size");
  config[ours.groups] = keys.required_size("ssm.group_count");
  config[ours.taps] = keys.required_size("ssm.conv_kernel");
}

Json layer_types(
    const std::vector<std::int64_t>& kv_heads, std::string_view without, std::string_view with
) {
  Json types = Json::array();
  for (const std::int64_t heads : kv_heads) {
    types.push_back(heads > 0 ? with : without);
  }
  return types;
}

// A letter for each layer.
std::string layer_letters(
    const Keys& keys, const std::vector<std::int64_t>& kv_heads, char without_mixing
) {
  constexpr std::string_view kWidths = "feed_forward_length";
  const auto layers = static_cast<std::int64_t>(kv_heads.size());
  const auto widths = keys.by_layer(kWidths, layers);
  std::string letters;
  for (std::size_t i = 0; i < kv_heads.size(); ++i) {
    const std::int64_t width = widths.empty() ? 0 : widths[i];
    keys.expect(
        width == 0 || kv_heads[i] == 0,
        kWidths,
        fmt::format("{} in layer {}", width, i),
        "0 in layers of attention"
    );
    letters += kv_heads[i] > 0 ? '*' : width > 0 ? without_mixing : 'M';
  }
  return letters;
}

// Sizes and rules of experts in layers of single parts.
void add_single_experts(const Keys& keys, Json& config) {
  config["n_routed_experts"] = keys.required("expert_count");
  config["n_shared_experts"] = keys.integer("expert_shared_count").value_or(1);
  config["moe_shared_expert_intermediate_size"] =
      keys.required("expert_shared_feed_forward_length");
  config["norm_topk_prob"] = keys.boolean("expert_weights_norm").value_or(true);
  config["routed_scaling_factor"] = keys.number("expert_weights_scale").value_or(1.0);
  config["n_group"] = keys.integer("expert_group_count").value_or(1);
  config["topk_group"] = keys.integer("expert_group_used_count").value_or(1);
  if (const auto latent = keys.integer("moe_latent_size")) {
    config["moe_latent_size"] = *latent;
  }
}

}  // namespace

std::int64_t mlp_width(const Keys& keys, const Family& family, std::int64_t layers) {
  constexpr std::string_view kKey = "feed_forward_length";
  if (family.kinds != LayerKinds::kSingleParts) {
    return keys.required(kKey);
  }
  const auto widths = keys.by_layer(kKey, layers);
  return std::max<std::int64_t>(widths.empty() ? 0 : *std::ranges::max_element(widths), 1);
}

void add_hybrid(const Keys& keys, const Family& family, Json& config) {
  if (family.kinds == LayerKinds::kAlike) {
    return;
  }
  const auto layers = config["num_hidden_layers"].get<std::int64_t>();
  const auto kv_heads = kv_heads_by_layer(keys, layers);
  if (family.kinds == LayerKinds::kConvolutions) {
    config["layer_types"] = layer_types(kv_heads, "conv", "full_attention");
    config["conv_L_cache"] = keys.required_size("shortconv.l_cache");
    config["block_auto_adjust_ff_dim"] = false;
    config["norm_eps"] = config["rms_norm_eps"];
    config["num_dense_layers"] = keys.integer("leading_dense_block_count").value_or(0);
  } else if (family.kinds == LayerKinds::kStateSpaces) {
    config["layer_types"] = layer_types(kv_heads, "mamba", "attention");
    config["num_local_experts"] = 0;
    config["shared_intermediate_size"] = config["intermediate_size"];
    const bool rotates = keys.boolean("rope.scaling.finetuned").value_or(false);
    config["position_embedding_type"] = rotates ? "rope" : "nope";
    add_state_space(
        keys,
        {"mamba_n_heads", "mamba_d_head", "mamba_d_state", "mamba_n_groups", "mamba_d_conv"},
        config
    );
  } else {
    config["hybrid_override_pattern"] = layer_letters(keys, kv_heads, family.experts ? 'E' : '-');
    if (family.experts) {
      add_single_experts(keys, config);
    }
    config["layer_norm_epsilon"] =
        keys.number("attention.layer_norm_epsilon").value_or(config["rms_norm_eps"].get<double>());
    add_state_space(
        keys,
        {"mamba_num_heads", "mamba_head_dim", "ssm_state_size", "n_groups", "conv_kernel"},
        config
    );
  }
}

std::optional<TensorRole> hybrid_role(const Family& family, std::string_view name) {
  const bool has_final_name =
      family.kinds == LayerKinds::kConvolutions || family.kinds == LayerKinds::kSingleParts;
  if (has_final_name && (name == "output_norm.weight" || name == "token_embd_norm.weight")) {
    const bool beside_table = family.kinds == LayerKinds::kConvolutions;
    return TensorRole{.name = beside_table ? "model.embedding_norm.weight" : "model.norm_f.weight"};
  }
  const auto layer = numbered_name(name, "blk.");
  if (!layer) {
    return std::nullopt;
  }
  auto role = layer_role(family.kinds, layer->rest);
  if (role) {
    role->name = fmt::format("model.layers.{}.{}", layer->number, role->name);
  }
  return role;
}

}  // namespace saker::load::gguf
