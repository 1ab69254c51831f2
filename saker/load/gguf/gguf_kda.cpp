// SPDX-License-Identifier: Apache-2.0
#include "saker/load/gguf/gguf_kda.h"

#include "saker/load/gguf/gguf_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>

namespace saker::load::gguf {
namespace {

constexpr std::array<ModuleNames, 9> kKdaModules = {{
    {"ssm_f_a.weight", "f_a_proj.weight"},
    {"ssm_f_b.weight", "f_b_proj.weight"},
    {"ssm_g_a.weight", "g_a_proj.weight"},
    {"ssm_g_b.weight", "g_b_proj.weight"},
    {"ssm_beta.weight", "b_proj.weight"},
    {"ssm_norm.weight", "o_norm.weight"},
    {"ssm_dt.bias", "dt_bias"},
    {"ssm_dt", "dt_bias"},
    {"ssm_a", "A_log"},
}};

constexpr std::array<ModuleNames, 3> kKdaKernels = {{
    {"ssm_conv1d_q.weight", "q_conv.conv.weight"},
    {"ssm_conv1d_k.weight", "k_conv.conv.weight"},
    {"ssm_conv1d_v.weight", "v_conv.conv.weight"},
}};

}  // namespace

void add_kda(const Keys& keys, Json& config) {
  const auto layers = config["num_hidden_layers"].get<std::int64_t>();
  auto kv_heads = keys.by_layer("attention.head_count_kv", layers);
  kv_heads.resize(static_cast<std::size_t>(layers), 1);
  Json linear = Json::array();
  Json full = Json::array();
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    (kv_heads[static_cast<std::size_t>(layer)] > 0 ? full : linear).push_back(layer + 1);
  }
  config["linear_attn_config"] = {
      {"kda_layers", linear},
      {"full_attn_layers", full},
      {"num_heads", head_count(keys)},
      {"head_dim", keys.required_size("kda.head_dim")},
      {"short_conv_kernel_size", keys.required_size("ssm.conv_kernel")},
  };
  config["model_max_length"] = config["max_position_embeddings"];
  config["moe_renormalize"] = config["norm_topk_prob"];
  if (config.contains("n_group")) {
    config["num_expert_group"] = config["n_group"];
  }
}

std::optional<TensorRole> kda_role(std::string_view name) {
  const auto* const kernel = std::ranges::find(kKdaKernels, name, &ModuleNames::gguf);
  const auto* const module = std::ranges::find(kKdaModules, name, &ModuleNames::gguf);
  TensorRole role;
  if (kernel != kKdaKernels.end()) {
    role.name = fmt::format("self_attn.{}", kernel->ours);
    role.ends_in_one = true;
  } else if (module != kKdaModules.end()) {
    role.name = fmt::format("self_attn.{}", module->ours);
    role.is_decay = module->ours == "A_log";
    role.is_flat = role.is_decay;
  } else {
    return std::nullopt;
  }
  return role;
}

}  // namespace saker::load::gguf
