// SPDX-License-Identifier: Apache-2.0
#include "saker/load/gguf/gguf_linear_attention.h"

#include "saker/base/numbered_name.h"
#include "saker/load/gguf/gguf_kda.h"
#include "saker/load/gguf/gguf_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

namespace saker::load::gguf {
namespace {

DeltaSizes sizes_of(const Keys& keys) {
  DeltaSizes sizes = {
      .key_heads = keys.required_size("ssm.group_count"),
      .value_heads = keys.required_size("ssm.time_step_rank"),
      .key_dim = keys.required_size("ssm.state_size"),
      .value_dim = 0,
  };
  keys.expect(
      sizes.value_heads % sizes.key_heads == 0,
      "ssm.time_step_rank",
      fmt::format("{}", sizes.value_heads),
      fmt::format("a multiple of the {} key heads", sizes.key_heads)
  );
  const std::int64_t inner = keys.required("ssm.inner_size");
  keys.expect(
      inner > 0 && inner % sizes.value_heads == 0,
      "ssm.inner_size",
      fmt::format("{}", inner),
      fmt::format("a multiple of the {} value heads", sizes.value_heads)
  );
  sizes.value_dim = keys.checked_size("ssm.inner_size", inner / sizes.value_heads);
  return sizes;
}

// In which order a tensor has value heads.
enum class HeadOrder : std::uint8_t {
  kNone,
  kNumbers,  // A number, or row, for each head.
  kRows,     // The rows of a head's values.
  kMixed,    // As kRows, behind queries and keys.
  kColumns,
};

struct LayerTensor {
  std::string_view gguf;
  std::string_view ours;
  HeadOrder order;
};

constexpr std::array<LayerTensor, 11> kTensors = {{
    {"attn_qkv.weight", "in_proj_qkv.weight", HeadOrder::kMixed},
    {"attn_gate.weight", "in_proj_z.weight", HeadOrder::kRows},
    {"ssm_beta.weight", "in_proj_b.weight", HeadOrder::kNumbers},
    {"ssm_alpha.weight", "in_proj_a.weight", HeadOrder::kNumbers},
    {"ssm_ba.weight", "in_proj_ba.weight", HeadOrder::kNone},  // Each key head's in turn.
    {"ssm_conv1d.weight", "conv1d.weight", HeadOrder::kMixed},
    {"ssm_a", "A_log", HeadOrder::kNumbers},
    {"ssm_dt.bias", "dt_bias", HeadOrder::kNumbers},
    {"ssm_dt", "dt_bias", HeadOrder::kNumbers},  // ollama's name.
    {"ssm_norm.weight", "norm.weight", HeadOrder::kNone},
    {"ssm_out.weight", "out_proj.weight", HeadOrder::kColumns},
}};

ValueHeads heads_of(const DeltaSizes& sizes, std::int64_t first, std::int64_t size) {
  if (sizes.key_heads == sizes.value_heads) {
    return {};  // One each: both orders are the same.
  }
  return {
      .key_heads = static_cast<int>(sizes.key_heads),
      .repeats = static_cast<int>(sizes.value_heads / sizes.key_heads),
      .first = first,
      .size = size,
  };
}

// Without its name.
TensorRole delta_role(const LayerTensor& part, const DeltaSizes& sizes) {
  TensorRole role;
  role.is_decay = part.ours == "A_log";
  role.ends_in_one = part.ours == "conv1d.weight";
  switch (part.order) {
    case HeadOrder::kNumbers:
      role.rows = heads_of(sizes, 0, 1);
      break;
    case HeadOrder::kRows:
      role.rows = heads_of(sizes, 0, sizes.value_dim);
      break;
    case HeadOrder::kMixed:
      role.rows = heads_of(sizes, 2 * sizes.key_heads * sizes.key_dim, sizes.value_dim);
      break;
    case HeadOrder::kColumns:
      role.columns = heads_of(sizes, 0, sizes.value_dim);
      break;
    default:
      break;
  }
  return role;
}

}  // namespace

std::int64_t ValueHeads::file_row(std::int64_t row) const {
  if (row < first) {
    return row;
  }
  const std::int64_t head = (row - first) / size;
  const std::int64_t file_head = head % repeats * key_heads + head / repeats;
  return first + file_head * size + (row - first) % size;
}

void ValueHeads::move_columns(std::span<std::byte> row, std::vector<std::byte>& scratch) const {
  scratch.assign(row.begin(), row.end());
  const auto heads = static_cast<std::size_t>(key_heads) * static_cast<std::size_t>(repeats);
  const std::size_t bytes = row.size() / heads;
  for (std::size_t head = 0; head < heads; ++head) {
    const std::size_t from =
        head % static_cast<std::size_t>(repeats) * static_cast<std::size_t>(key_heads) +
        head / static_cast<std::size_t>(repeats);
    std::memcpy(row.data() + head * bytes, scratch.data() + from * bytes, bytes);
  }
}

void add_linear_attention(const Header& header, const Keys& keys, Json& config) {
  const DeltaSizes sizes = sizes_of(keys);
  config["linear_num_key_heads"] = sizes.key_heads;
  config["linear_num_value_heads"] = sizes.value_heads;
  config["linear_key_head_dim"] = sizes.key_dim;
  config["linear_value_head_dim"] = sizes.value_dim;
  config["linear_conv_kernel_dim"] = keys.required("ssm.conv_kernel");
  config["full_attention_interval"] = keys.integer("full_attention_interval").value_or(4);
  const std::string recurrent = keys.full("attention.recurrent_layers");
  if (header.is_array(recurrent)) {
    auto flags = header.booleans(recurrent);
    flags.resize(std::min(flags.size(), static_cast<std::size_t>(layer_count(keys))));
    for (const bool is_linear : flags) {
      config["layer_types"].push_back(is_linear ? "linear_attention" : "full_attention");
    }
  }
  const auto head_dim = config["head_dim"].get<std::int64_t>();
  const auto rotated = keys.integer("rope.dimension_count").value_or(head_dim / 4);
  keys.expect(
      rotated > 0 && rotated <= head_dim,
      "rope.dimension_count",
      fmt::format("{}", rotated),
      fmt::format("a number from 1 to a head's {}", head_dim)
  );
  config["partial_rotary_factor"] = static_cast<double>(rotated) / static_cast<double>(head_dim);
}

std::optional<TensorRole> linear_attention_role(
    const Family& family, const Keys& keys, std::string_view name
) {
  const auto layer = numbered_name(name, "blk.");
  const auto* part = layer && layer->number < layer_count(keys)
                         ? std::ranges::find(kTensors, layer->rest, &LayerTensor::gguf)
                         : kTensors.end();
  if (part == kTensors.end()) {
    return std::nullopt;
  }
  TensorRole role = delta_role(*part, sizes_of(keys));
  if (family.heads_in_order) {
    role.rows = {};
    role.columns = {};
  }
  role.name = fmt::format("model.layers.{}.linear_attn.{}", layer->number, part->ours);
  return role;
}

std::optional<DeltaTensor> find_delta_tensor(const DeltaSizes& sizes, std::string_view ours) {
  const auto* part = std::ranges::find(kTensors, ours, &LayerTensor::ours);
  return part != kTensors.end() ? std::optional(DeltaTensor{part->gguf, delta_role(*part, sizes)})
                                : std::nullopt;
}

// Models of which some layers have no rows.

namespace {

constexpr std::array<ModuleNames, 10> kConvolutionModules = {{
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
}};

constexpr std::array<ModuleNames, 4> kJoinedHeadModules = {{
    {"attn_qkv", "attention.query_key_value"},
    {"attn_output", "attention.dense"},
    {"attn_q_norm", "attention.query_layernorm"},
    {"attn_k_norm", "attention.key_layernorm"},
}};

constexpr std::array<ModuleNames, 11> kSinglePartModules = {{
    {"attn_norm", "norm"},
    {"attn_q", "mixer.q_proj"},
    {"attn_k", "mixer.k_proj"},
    {"attn_v", "mixer.v_proj"},
    {"attn_output", "mixer.o_proj"},
    {"ffn_up", "mixer.up_proj"},
    {"ffn_down", "mixer.down_proj"},
    {"ffn_up_exps", "mixer.switch_mlp.fc1"},
    {"ffn_down_exps", "mixer.switch_mlp.fc2"},
    {"ffn_latent_down", "mixer.fc1_latent_proj"},
    {"ffn_latent_up", "mixer.fc2_latent_proj"},
}};

constexpr std::array<ModuleNames, 2> kStateSpaceModules = {{
    {"ssm_in", "in_proj"},
    {"ssm_out", "out_proj"},
}};

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

std::optional<TensorRole> module_role(std::span<const ModuleNames> modules, std::string_view name) {
  std::string ours = module_tensor(modules, name);
  return ours.empty() ? std::nullopt : std::optional(TensorRole{.name = std::move(ours)});
}

std::optional<TensorRole> convolution_role(std::string_view name) {
  if (name == "shortconv.conv.weight") {
    return TensorRole{.name = "conv.conv.weight", .ends_in_one = true};
  }
  if (name == "shortconv.conv.bias") {
    return TensorRole{.name = "conv.conv.bias"};
  }
  return module_role(kConvolutionModules, name);
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
  return module_role(kSinglePartModules, name);
}

std::optional<TensorRole> layer_role(LayerKinds kinds, std::string_view name) {
  switch (kinds) {
    case LayerKinds::kJoinedHeads:
      return module_role(kJoinedHeadModules, name);
    case LayerKinds::kKda:
      return kda_role(name);
    case LayerKinds::kConvolutions:
      return convolution_role(name);
    case LayerKinds::kStateSpaces:
      return state_space_role("mamba", name);
    case LayerKinds::kSingleParts:
      return single_part_role(name);
    case LayerKinds::kBoth:
      // llama.cpp's converter leaves out the end of this name.
      return name == "ffn_norm" ? std::optional(TensorRole{.name = "pre_ff_layernorm.weight"})
                                : state_space_role("mamba", name);
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

constexpr StateSpaceKeys kMambaKeys{
    "mamba_n_heads", "mamba_d_head", "mamba_d_state", "mamba_n_groups", "mamba_d_conv"
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
  if (family.kinds == LayerKinds::kJoinedHeads) {
    config["score_function"] = "sigmoid";
    return;
  }
  if (family.kinds == LayerKinds::kKda) {
    add_kda(keys, config);
    return;
  }
  const auto layers = config["num_hidden_layers"].get<std::int64_t>();
  const auto kv_heads = kv_heads_by_layer(keys, layers);
  if (family.kinds == LayerKinds::kConvolutions) {
    config["layer_types"] = layer_types(kv_heads, "conv", "full_attention");
    config["conv_L_cache"] = keys.required_size("shortconv.l_cache");
    config["block_auto_adjust_ff_dim"] = false;
    config["norm_eps"] = config["rms_norm_eps"];
  } else if (family.kinds == LayerKinds::kStateSpaces) {
    config["layer_types"] = layer_types(kv_heads, "mamba", "attention");
    if (!family.experts) {
      config["num_local_experts"] = 0;
      config["shared_intermediate_size"] = config["intermediate_size"];
    }
    const bool rotates = keys.boolean("rope.scaling.finetuned").value_or(false);
    config["position_embedding_type"] = rotates ? "rope" : "nope";
    add_state_space(keys, kMambaKeys, config);
  } else if (family.kinds == LayerKinds::kBoth) {
    add_state_space(keys, kMambaKeys, config);
    config["mamba_d_ssm"] = keys.required("ssm.inner_size");
    config["mamba_norm_before_gate"] = false;
  } else {
    config["hybrid_override_pattern"] = layer_letters(keys, kv_heads, family.experts ? 'E' : '-');
    if (const auto latent = keys.integer("moe_latent_size")) {
      config["moe_latent_size"] = *latent;
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
  const std::string_view final_norm = family.kinds == LayerKinds::kConvolutions  ? "embedding_norm"
                                      : family.kinds == LayerKinds::kSingleParts ? "norm_f"
                                      : family.kinds == LayerKinds::kBoth        ? "final_layernorm"
                                                                                 : "";
  if (!final_norm.empty() && (name == "output_norm.weight" || name == "token_embd_norm.weight")) {
    return TensorRole{.name = fmt::format("model.{}.weight", final_norm)};
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
