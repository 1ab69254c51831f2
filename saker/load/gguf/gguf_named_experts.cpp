// SPDX-License-Identifier: Apache-2.0
#include "saker/load/gguf/gguf_named_experts.h"

#include "saker/base/numbered_name.h"
#include "saker/load/gguf/gguf_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <string>

namespace saker::load::gguf {
namespace {

// Names behind "blk.N." and "model.layers.N." of experts with biases (conversion/gpt_oss.py), and of
// those beside an MLP (conversion/gemma.py).
constexpr std::array<ModuleNames, 9> kBiased = {{
    {"attn_sinks.weight", "self_attn.sinks"},
    {"ffn_gate_inp.weight", "mlp.router.weight"},
    {"ffn_gate_inp.bias", "mlp.router.bias"},
    {"ffn_gate_exps.weight", "mlp.experts.gate_proj.weight"},
    {"ffn_gate_exps.bias", "mlp.experts.gate_proj.bias"},
    {"ffn_up_exps.weight", "mlp.experts.up_proj.weight"},
    {"ffn_up_exps.bias", "mlp.experts.up_proj.bias"},
    {"ffn_down_exps.weight", "mlp.experts.down_proj.weight"},
    {"ffn_down_exps.bias", "mlp.experts.down_proj.bias"},
}};

constexpr std::array<ModuleNames, 9> kBeside = {{
    {"ffn_gate_inp.weight", "router.proj.weight"},
    {"ffn_gate_inp.scale", "router.scale"},
    {"ffn_gate_exps.weight", "experts.switch_glu.gate_proj.weight"},
    {"ffn_up_exps.weight", "experts.switch_glu.up_proj.weight"},
    {"ffn_down_exps.weight", "experts.switch_glu.down_proj.weight"},
    {"ffn_down_exps.scale", "router.per_expert_scale"},
    {"post_ffw_norm_1.weight", "post_feedforward_layernorm_1.weight"},
    {"pre_ffw_norm_2.weight", "pre_feedforward_layernorm_2.weight"},
    {"post_ffw_norm_2.weight", "post_feedforward_layernorm_2.weight"},
}};

}  // namespace

void add_biased_experts(const Keys& keys, Json& config) {
  config["num_local_experts"] = keys.required("expert_count");
  config["num_experts_per_tok"] = keys.required("expert_used_count");
  config["intermediate_size"] = keys.required("expert_feed_forward_length");
  config["sliding_window"] = keys.required("attention.sliding_window");
  if (const auto scaling = config.find("rope_scaling"); scaling != config.end()) {
    (*scaling)["truncate"] = false;
  }
}

void add_experts_beside(const Keys& keys, Json& config) {
  const auto experts = keys.integer("expert_count").value_or(0);
  if (experts == 0) {
    return;
  }
  config["enable_moe_block"] = true;
  config["num_experts"] = experts;
  config["top_k_experts"] = keys.required("expert_used_count");
  config["moe_intermediate_size"] = keys.required("expert_feed_forward_length");
}

std::vector<TensorRole> named_expert_roles(const Family& family, std::string_view name) {
  const auto layer = numbered_name(name, "blk.");
  if (!layer || !(family.biased_experts || family.two_kinds)) {
    return {};
  }
  const auto in_layer = [&](std::string_view path) {
    return fmt::format("model.layers.{}.{}", layer->number, path);
  };
  if (layer->rest == "ffn_gate_up_exps.weight") {
    const std::string scope = in_layer(family.two_kinds ? "experts.switch_glu" : "mlp.experts");
    return {
        {.name = scope + ".gate_proj.weight", .part = 0, .parts = 2},
        {.name = scope + ".up_proj.weight", .part = 1, .parts = 2},
    };
  }
  const std::span<const ModuleNames> names = family.biased_experts ? std::span(kBiased)
                                             : family.two_kinds    ? std::span(kBeside)
                                                                   : std::span<const ModuleNames>();
  const auto found = std::ranges::find(names, layer->rest, &ModuleNames::gguf);
  return found == names.end() ? std::vector<TensorRole>()
                              : std::vector<TensorRole>{{.name = in_layer(found->ours)}};
}

}  // namespace saker::load::gguf
