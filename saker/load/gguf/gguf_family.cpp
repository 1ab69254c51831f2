// SPDX-License-Identifier: Apache-2.0
#include "saker/load/gguf/gguf_family.h"

#include "saker/base/error.h"
#include "saker/base/numbered_name.h"
#include "saker/base/utf8.h"
#include "saker/load/gguf/gguf_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

namespace saker::load::gguf {
namespace {

constexpr std::string_view kGelu = "gelu_pytorch_tanh";

constexpr std::array<Family, 21> kFamilies{{
    {.name = "llama", .model_type = "llama", .rotated_pairs = true},
    {.name = "qwen2", .model_type = "qwen2"},
    {.name = "qwen3", .model_type = "qwen3"},
    {.name = "qwen35", .model_type = "qwen3_5", .linear_attention = true},
    {.name = "qwen3moe", .model_type = "qwen3_moe", .experts = true},
    {.name = "gemma", .model_type = "gemma", .activation = kGelu, .norms_plus_one = true},
    {.name = "gemma2",
     .model_type = "gemma2",
     .activation = kGelu,
     .norms_plus_one = true,
     .output_norms = true,
     .softcaps = true,
     .windows = true,
     .widest_layers = 46},
    {.name = "gemma3",
     .model_type = "gemma3_text",
     .activation = kGelu,
     .norms_plus_one = true,
     .output_norms = true,
     .windows = true,
     .widest_layers = 62,
     .window_pattern = 6},
    {.name = "gemma4",
     .model_type = "gemma4_text",
     .activation = kGelu,
     .output_norms = true,
     .windows = true,
     .two_kinds = true},
    {.name = "gemma-embedding",
     .model_type = "gemma3_text",
     .activation = kGelu,
     .norms_plus_one = true,
     .output_norms = true,
     .windows = true,
     .widest_layers = 62,
     .window_pattern = 6,
     .bidirectional = true},
    {.name = "gpt-oss", .model_type = "gpt_oss", .biased_experts = true},
    {.name = "smollm3", .model_type = "smollm3", .rotated_pairs = true},
    {.name = "granite", .model_type = "granite", .rotated_pairs = true, .factors = true},
    {.name = "mistral3", .model_type = "ministral3", .rotated_pairs = true, .scaled_queries = true},
    {.name = "olmo2", .model_type = "olmo2", .output_norms = true, .windowed_type = "olmo3"},
    {.name = "phi3", .model_type = "phi3", .joined = true, .windowed_type = "phi3"},
    {.name = "cohere2",
     .model_type = "cohere2",
     .windows = true,
     .layer_norms = true,
     .scaled_logits = true},
    {.name = "qwen3vl", .model_type = "qwen3_vl"},
    {.name = "seed_oss", .model_type = "seed_oss"},
    {.name = "exaone4", .model_type = "exaone4", .output_norms = true, .windowed_type = "exaone4"},
    {.name = "ernie4_5", .model_type = "ernie4_5"},
}};

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

// "gemma3" for gemma3_text, "llama" for models that llama.cpp calls so.
std::string_view plain_type(std::string_view model_type) {
  for (const std::string_view suffix : {"_text", "_unified"}) {
    if (model_type.ends_with(suffix)) {
      model_type.remove_suffix(suffix.size());
    }
  }
  return model_type == "mistral" ? "llama" : model_type;
}

}  // namespace

std::span<const Family> families() {
  return kFamilies;
}

const Family& family_of(const Header& header) {
  const auto name = header.string("general.architecture");
  require(
      name.has_value(),
      ErrorCode::kCorruptData,
      "{}: 'general.architecture' is missing",
      header.what()
  );
  const auto* found = std::ranges::find(kFamilies, *name, &Family::name);
  std::string known;
  for (const Family& family : kFamilies) {
    known += fmt::format("{}{}", known.empty() ? "" : ", ", family.name);
  }
  require(
      found != kFamilies.end(),
      ErrorCode::kUnsupported,
      "{}: architecture {}, expected one of {}",
      header.what(),
      quote(*name),
      known
  );
  return *found;
}

bool are_relatives(std::string_view family_type, std::string_view model_type) {
  return model_type == "generic" || plain_type(family_type) == plain_type(model_type);
}

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

std::vector<TensorRole> expert_roles(const Family& family, std::string_view name) {
  const auto layer = numbered_name(name, "blk.");
  if (!layer || !(family.experts || family.biased_experts || family.two_kinds)) {
    return {};
  }
  const auto in_layer = [&](std::string_view path) {
    return fmt::format("model.layers.{}.{}", layer->number, path);
  };
  if (layer->rest == "ffn_gate_up_exps.weight") {
    const std::string scope = in_layer(family.two_kinds ? "experts.switch_glu" : "mlp.switch_mlp");
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
