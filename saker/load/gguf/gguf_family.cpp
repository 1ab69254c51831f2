// SPDX-License-Identifier: Apache-2.0
#include "saker/load/gguf/gguf_family.h"

#include "saker/base/error.h"
#include "saker/base/numbered_name.h"
#include "saker/base/utf8.h"
#include "saker/load/gguf/gguf_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>

namespace saker::load::gguf {
namespace {

constexpr std::string_view kGelu = "gelu_pytorch_tanh";

constexpr Mixture kGatedShare{
    .shared = "shared_expert",
    .shared_gate = "shared_expert_gate",
    .shared_width = "shared_expert_intermediate_size",
};

constexpr Mixture kGrouped{
    .choice_bias = "gate.e_score_correction_bias",
    .shared = "shared_experts",
    .experts = "n_routed_experts",
    .shared_count = "n_shared_experts",
    .dense_layers = "first_k_dense_replace",
    .sigmoid = true,
};

constexpr Mixture kJoinedMixture{
    .choice_bias = "gate.expert_bias",
    .shared = "shared_experts",
    .shared_width = "moe_shared_expert_intermediate_size",
    .shared_count = "num_shared_experts",
    .dense_layers = "first_k_dense_replace",
    .choice_flag = "moe_router_enable_expert_bias",
    .sigmoid = true,
};

constexpr Mixture kKdaMixture{
    .choice_bias = "e_score_correction_bias",
    .shared = "shared_experts",
    .chosen = "num_experts_per_token",
    .shared_count = "num_shared_experts",
    .dense_layers = "first_k_dense_replace",
    .sigmoid = true,
};

constexpr Mixture kConvolutionMixture{
    .scope = "feed_forward",
    .choice_bias = "expert_bias",
    .dense_layers = "num_dense_layers",
    .sigmoid = true
};

constexpr Mixture kSinglePartMixture{
    .scope = "mixer",
    .choice_bias = "gate.e_score_correction_bias",
    .shared = "shared_experts",
    .experts = "n_routed_experts",
    .shared_width = "moe_shared_expert_intermediate_size",
    .shared_count = "n_shared_experts",
    .sigmoid = true
};

constexpr Mixture kErnieMixture{
    .choice_bias = "moe_statics.e_score_correction_bias",
    .shared = "shared_experts",
    .experts = "moe_num_experts",
    .chosen = "moe_k",
    .shared_count = "moe_num_shared_experts",
    .dense_layers = "moe_layer_start_index",
    .interval = "moe_layer_interval"
};

constexpr Mixture kBiasedMixture{
    .scope = "block_sparse_moe",
    .choice_bias = "e_score_correction_bias",
    .experts = "num_local_experts",
    .width = "intermediate_size",
    .sigmoid = true
};

constexpr Mixture kRouterMixture{
    .router = "router.gate",
    .choice_bias = "expert_bias",
    .stacks = "experts",
    .shared = "shared_experts",
    .shared_count = "num_shared_experts",
    .dense_layers = "num_dense_layers",
    .normalized_flag = "route_norm",
    .scale = "route_scale",
    .sigmoid = true
};

constexpr Mixture of_unnormalized(Mixture mixture) {
  mixture.normalized = false;
  return mixture;
}

constexpr Mixture with_stacks(Mixture mixture, std::string_view stacks) {
  mixture.stacks = stacks;
  return mixture;
}

constexpr std::array<ModuleNames, 3> kGatedSandwich{{
    {"attn_gate", "self_attn.gate_proj"},
    {"ffn_norm", "pre_mlp_layernorm"},
    {"post_ffw_norm", "post_mlp_layernorm"},
}};

constexpr std::array<ModuleNames, 4> kBothModules{{
    {"ffn_norm", "pre_ff_layernorm"},
    {"ffn_gate", "feed_forward.gate_proj"},
    {"ffn_up", "feed_forward.up_proj"},
    {"ffn_down", "feed_forward.down_proj"},
}};

constexpr std::array<ModuleNames, 3> kFeedForwardModules{{
    {"ffn_gate", "feed_forward.gate_proj"},
    {"ffn_up", "feed_forward.up_proj"},
    {"ffn_down", "feed_forward.down_proj"},
}};

constexpr Mixture kInputMixture{
    .scope = "feed_forward",
    .router = "router",
    .stacks = "experts",
    .shared = "shared_expert",
    .experts = "num_local_experts",
    .width = "intermediate_size",
    .dense_width = "intermediate_size_mlp",
    .interval = "interleave_moe_layer_step",
    .sigmoid = true
};

constexpr std::array<ModuleNames, 2> kNormsOfProjections{{
    {"attn_q_norm", "self_attn.query_layernorm"},
    {"attn_k_norm", "self_attn.key_layernorm"},
}};

constexpr Mixture kLocalMixture{
    .scope = "block_sparse_moe",
    .router = "router.layer",
    .experts = "num_local_experts",
    .width = "intermediate_size"
};

constexpr Mixture beside_shared(Mixture mixture) {
  mixture.shared = "shared_mlp";
  mixture.shared_beside = true;
  mixture.shared_width = "shared_intermediate_size";
  return mixture;
}

constexpr std::array<Family, 25> kFamilies{{
    {.name = "llama", .model_type = "llama", .rotated_pairs = true},
    {.name = "qwen2", .model_type = "qwen2"},
    {.name = "qwen3", .model_type = "qwen3"},
    {.name = "qwen35", .model_type = "qwen3_5", .linear_attention = true},
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
    {.name = "granitehybrid",
     .model_type = "granitemoehybrid",
     .rotated_pairs = true,
     .kinds = LayerKinds::kStateSpaces,
     .factors = true},
    {.name = "lfm2", .model_type = "lfm2", .kinds = LayerKinds::kConvolutions},
    {.name = "nemotron_h", .model_type = "nemotron_h", .kinds = LayerKinds::kSingleParts},
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
    {.name = "falcon-h1",
     .model_type = "falcon_h1",
     .modules = kBothModules,
     .kinds = LayerKinds::kBoth},
    {.name = "hunyuan-dense", .model_type = "hunyuan_v1_dense", .modules = kNormsOfProjections},
}};

// With experts, in some layers or in all.
constexpr std::array<Family, 15> kMixtures{{
    {.name = "llama4",
     .model_type = "llama4_text",
     .modules = kFeedForwardModules,
     .experts = true,
     .mixture = kInputMixture,
     .experts_without_norms = 128},
    {.name = "afmoe",
     .model_type = "afmoe",
     .modules = kGatedSandwich,
     .flag = "mup_enabled",
     .output_norms = true,
     .experts = true,
     .mixture = kRouterMixture,
     .windows = true},
    {.name = "cohere2moe",
     .model_type = "cohere2_moe",
     .experts = true,
     .mixture =
         {.shared = "shared_experts",
          .width = "intermediate_size",
          .shared_count = "num_shared_experts",
          .dense_layers = "first_k_dense_replace",
          .dense_width = "prefix_dense_intermediate_size",
          .selection = "expert_selection_fn"},
     .windows = true,
     .windows_by_layer = true,
     .layer_norms = true,
     .scaled_logits = true},
    {.name = "hunyuan-moe",
     .model_type = "hunyuan_v1_moe",
     .modules = kNormsOfProjections,
     .experts = true,
     .mixture = {.router = "gate.wg", .shared = "shared_mlp", .chosen = "moe_topk"}},
    {.name = "qwen3vlmoe", .model_type = "qwen3_vl_moe", .experts = true},
    {.name = "deepseek2",
     .model_type = "deepseek_v3",
     .experts = true,
     .mixture = kGrouped,
     .latents = true},
    {.name = "qwen3moe", .model_type = "qwen3_moe", .experts = true},
    {.name = "llama",
     .model_type = "mixtral",
     .rotated_pairs = true,
     .experts = true,
     .mixture =
         {.scope = "block_sparse_moe", .experts = "num_local_experts", .width = "intermediate_size"}
    },
    {.name = "ernie4_5-moe", .model_type = "ernie4_5_moe", .experts = true, .mixture = kErnieMixture
    },
    {.name = "qwen2moe",
     .model_type = "qwen2_moe",
     .experts = true,
     .mixture = of_unnormalized(kGatedShare)},
    {.name = "glm4moe",
     .model_type = "glm4_moe",
     .experts = true,
     .mixture = kGrouped,
     .next_layer = true,
     .partial_rope = true},
    {.name = "dots1",
     .model_type = "dots1",
     .experts = true,
     .mixture = with_stacks(kGrouped, "experts")},
    {.name = "granitemoe",
     .model_type = "granitemoe",
     .rotated_pairs = true,
     .experts = true,
     .mixture = kLocalMixture,
     .factors = true},
    {.name = "minimax-m2",
     .model_type = "minimax_m2",
     .experts = true,
     .mixture = kBiasedMixture,
     .partial_rope = true},
    {.name = "olmoe",
     .model_type = "olmoe",
     .experts = true,
     .mixture = {.width = "intermediate_size", .normalized = false}},
}};

// As above, with layers of their own.
constexpr std::array<Family, 7> kHybridMixtures{{
    {.name = "bailingmoe2",
     .model_type = "bailing_moe",
     .experts = true,
     .mixture = kJoinedMixture,
     .kinds = LayerKinds::kJoinedHeads,
     .partial_rope = true},
    {.name = "kimi-linear",
     .model_type = "kimi_linear",
     .experts = true,
     .mixture = kKdaMixture,
     .kinds = LayerKinds::kKda,
     .latents = true},
    {.name = "granitehybrid",
     .model_type = "granitemoehybrid",
     .rotated_pairs = true,
     .experts = true,
     .mixture = beside_shared(kLocalMixture),
     .kinds = LayerKinds::kStateSpaces,
     .factors = true},
    {.name = "lfm2moe",
     .model_type = "lfm2_moe",
     .experts = true,
     .mixture = kConvolutionMixture,
     .kinds = LayerKinds::kConvolutions},
    {.name = "nemotron_h_moe",
     .model_type = "nemotron_h",
     .experts = true,
     .mixture = kSinglePartMixture,
     .kinds = LayerKinds::kSingleParts},
    {.name = "qwen35moe",
     .model_type = "qwen3_5_moe",
     .experts = true,
     .mixture = kGatedShare,
     .linear_attention = true},
    {.name = "qwen3next",
     .model_type = "qwen3_next",
     .experts = true,
     .mixture = kGatedShare,
     .linear_attention = true,
     .heads_in_order = true},
}};

template <std::size_t First, std::size_t Second>
constexpr std::array<Family, First + Second> all_of(
    const std::array<Family, First>& first, const std::array<Family, Second>& second
) {
  std::array<Family, First + Second> all;
  std::ranges::copy(second, std::ranges::copy(first, all.begin()).out);
  return all;
}

constexpr auto kAllFamilies = all_of(all_of(kFamilies, kMixtures), kHybridMixtures);

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
  return kAllFamilies;
}

const Family& family_of(const Header& header) {
  const auto name = header.string("general.architecture");
  require(
      name.has_value(),
      ErrorCode::kCorruptData,
      "{}: 'general.architecture' is missing",
      header.what()
  );
  const bool has_experts = header.integer(fmt::format("{}.expert_count", *name)).value_or(0) > 0;
  const auto* found = std::ranges::find(kAllFamilies, *name, &Family::name);
  // Some names are those of two families.
  const auto* with_experts = std::ranges::find_if(kAllFamilies, [&](const Family& family) {
    return has_experts && family.experts && family.name == *name;
  });
  if (with_experts != kAllFamilies.end()) {
    return *with_experts;
  }
  std::string known;
  for (const Family& family : kAllFamilies) {
    known += fmt::format("{}{}", known.empty() ? "" : ", ", family.name);
  }
  require(
      found != kAllFamilies.end(),
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

}  // namespace saker::load::gguf
