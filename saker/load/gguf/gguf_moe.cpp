// SPDX-License-Identifier: Apache-2.0
#include "saker/load/gguf/gguf_moe.h"

#include "saker/base/numbered_name.h"
#include "saker/load/gguf/gguf_named_experts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>

namespace saker::load::gguf {
namespace {

constexpr std::int64_t kSigmoidGating = 2;  // `expert_gating_func`; 1 is softmax.

struct ExpertPartName {
  std::string_view gguf;
  std::string_view projection;
};

constexpr std::array<ExpertPartName, 3> kStackParts{{
    {"ffn_gate_exps", "gate_proj"},
    {"ffn_up_exps", "up_proj"},
    {"ffn_down_exps", "down_proj"},
}};
constexpr std::array<ExpertPartName, 3> kSharedParts{{
    {"ffn_gate_shexp", "gate_proj"},
    {"ffn_up_shexp", "up_proj"},
    {"ffn_down_shexp", "down_proj"},
}};

// Copies an integer to a field, if the family has it and the file too.
void copy_size(const Keys& keys, std::string_view key, std::string_view field, Json& config) {
  const auto size = field.empty() ? std::nullopt : keys.integer(key);
  if (size) {
    config[std::string(field)] = *size;
  }
}

// For a family with routers of both kinds.
void add_selection(const Keys& keys, const Mixture& mixture, Json& config) {
  const std::int64_t gating = keys.integer("expert_gating_func").value_or(kSigmoidGating);
  const double scale = keys.number("expert_weights_scale").value_or(1.0);
  keys.expect(
      gating == 1 || gating == kSigmoidGating,
      "expert_gating_func",
      fmt::format("{}", gating),
      "1 (softmax) or 2 (sigmoid)"
  );
  keys.expect(scale == 1.0 || scale == 0.0, "expert_weights_scale", fmt::format("{}", scale), "1");
  config[std::string(mixture.selection)] = gating == kSigmoidGating ? "sigmoid" : "softmax";
  config[std::string(mixture.normalized_flag)] =
      keys.boolean("expert_weights_norm").value_or(mixture.normalized);
}

void add_router(const Keys& keys, const Mixture& mixture, Json& config) {
  if (!mixture.selection.empty()) {
    return add_selection(keys, mixture, config);
  }
  const bool is_normalized =
      keys.boolean("expert_weights_norm").value_or(mixture.sigmoid || mixture.normalized);
  if (!mixture.sigmoid) {
    keys.expect(
        is_normalized == mixture.normalized,
        "expert_weights_norm",
        fmt::format("{}", is_normalized),
        fmt::format("{}", mixture.normalized)
    );
  }
  config[std::string(mixture.normalized_flag)] = is_normalized;
  const double scale = keys.number("expert_weights_scale").value_or(1.0);
  const std::int64_t gating =
      keys.integer("expert_gating_func").value_or(mixture.sigmoid ? kSigmoidGating : 1);
  keys.expect(
      (gating == kSigmoidGating) == mixture.sigmoid,
      "expert_gating_func",
      fmt::format("{}", gating),
      mixture.sigmoid ? "2, a sigmoid" : "1, a softmax"
  );
  // 0 is none, too.
  if (mixture.sigmoid) {
    config[std::string(mixture.scale)] = scale == 0.0 ? 1.0 : scale;
    copy_size(keys, "expert_group_count", "n_group", config);
    copy_size(keys, "expert_group_used_count", "topk_group", config);
  } else {
    keys.expect(
        scale == 1.0 || scale == 0.0, "expert_weights_scale", fmt::format("{}", scale), "1"
    );
  }
}

std::optional<std::string> expert_part_path(
    const std::array<ExpertPartName, 3>& names, std::string_view scope, std::string_view part
) {
  const auto* found = std::ranges::find(names, part, &ExpertPartName::gguf);
  return found != names.end() ? std::optional(fmt::format("{}.{}", scope, found->projection))
                              : std::nullopt;
}

constexpr std::int64_t kGlmVocabulary = 154880;

bool is_glm(const Json& config) {
  const auto layers = config["num_hidden_layers"].get<std::int64_t>();
  return (layers == 47 || layers == 48) && config["vocab_size"] == kGlmVocabulary;
}

bool has_choice_bias(const Header& header) {
  return std::ranges::any_of(header.tensors, [](const TensorEntry& entry) {
    return entry.name.ends_with("exp_probs_b.bias");
  });
}

// True for sigmoids, false for softmax. The first files do not say it.
bool has_sigmoid_router(const Header& header, const Keys& keys, const Json& config) {
  constexpr std::string_view kKey = "expert_gating_func";
  const auto rule = keys.integer(kKey);
  if (!rule) {
    return is_glm(config) || has_choice_bias(header);
  }
  keys.expect(
      *rule == 1 || *rule == 2, kKey, fmt::format("{}", *rule), "1 (softmax) or 2 (sigmoid)"
  );
  return *rule == 2;
}

void add_latent_sizes(const Keys& keys, Json& config) {
  const auto rotated = keys.required_size("rope.dimension_count");
  const bool expanded = !keys.integer("attention.key_length_mla").has_value();
  const auto length = [&](std::string_view name) {
    return fmt::format("attention.{}_length{}", name, expanded ? "" : "_mla");
  };
  const auto head = keys.required_size(length("key"));
  keys.expect(
      head > rotated,
      length("key"),
      fmt::format("{}", head),
      fmt::format("more than the {} elements that rotate", rotated)
  );
  config["kv_lora_rank"] = keys.required_size("attention.kv_lora_rank");
  const auto query_rank = keys.integer("attention.q_lora_rank");
  config["q_lora_rank"] = query_rank ? Json(*query_rank) : Json(nullptr);
  config["qk_rope_head_dim"] = rotated;
  config["qk_nope_head_dim"] = head - rotated;
  config["v_head_dim"] = keys.required_size(length("value"));
  config["num_key_value_heads"] = config["num_attention_heads"];
  config["intermediate_size"] = keys.required("feed_forward_length");
  config["rope_theta"] = keys.number("rope.freq_base").value_or(10000.0);
}

// The factor of scores that YaRN brings: a tenth of it is in the file.
void add_score_factor(const Keys& keys, Json& config) {
  const auto scaling = config.find("rope_scaling");
  const double factor = 10.0 * keys.number("rope.scaling.yarn_log_multiplier").value_or(0.0);
  if (scaling != config.end() && factor > 0.0) {
    (*scaling)["mscale"] = factor;
    (*scaling)["mscale_all_dim"] = factor;
  }
}

void add_grouped_experts(const Header& header, const Keys& keys, Json& config) {
  const auto experts = keys.integer("expert_count").value_or(0);
  config["model_type"] = is_glm(config) ? "glm4_moe_lite" : "deepseek_v3";
  if (experts == 0) {
    config["n_routed_experts"] = nullptr;
    return;
  }
  const auto groups = keys.integer("expert_group_count").value_or(1);
  config["n_routed_experts"] = experts;
  config["num_experts_per_tok"] = keys.required("expert_used_count");
  config["moe_intermediate_size"] = keys.required("expert_feed_forward_length");
  config["n_shared_experts"] = keys.integer("expert_shared_count").value_or(0);
  config["first_k_dense_replace"] = keys.integer("leading_dense_block_count").value_or(0);
  config["routed_scaling_factor"] = keys.number("expert_weights_scale").value_or(1.0);
  config["norm_topk_prob"] = keys.boolean("expert_weights_norm").value_or(false);
  config["n_group"] = groups;
  config["topk_group"] = keys.integer("expert_group_used_count").value_or(groups);
  if (!has_sigmoid_router(header, keys, config)) {
    config["model_type"] = "deepseek_v2";
    config["topk_method"] = groups > 1 ? "group_limited_greedy" : "greedy";
  }
}

}  // namespace

void add_experts(const Header& header, const Keys& keys, const Family& family, Json& config) {
  if (family.biased_experts || family.two_kinds) {
    family.biased_experts ? add_biased_experts(keys, config) : add_experts_beside(keys, config);
    return;
  }
  const auto experts = keys.integer("expert_count").value_or(0);
  if (!family.experts) {
    keys.expect(
        experts == 0, "expert_count", fmt::format("{}", experts), "a model without experts"
    );
    return;
  }
  const Mixture& mixture = family.mixture;
  config[std::string(mixture.experts)] = experts;
  config[std::string(mixture.chosen)] = keys.required("expert_used_count");
  if (!mixture.dense_width.empty()) {
    config[std::string(mixture.dense_width)] = config["intermediate_size"];
  }
  const auto width = keys.integer("expert_feed_forward_length");
  config[std::string(mixture.width)] = width ? *width : keys.required("feed_forward_length");
  config["decoder_sparse_step"] = 1;
  config["mlp_only_layers"] = Json::array();
  copy_size(keys, "expert_shared_feed_forward_length", mixture.shared_width, config);
  copy_size(keys, "expert_shared_count", mixture.shared_count, config);
  copy_size(keys, "interleave_moe_layer_step", mixture.interval, config);
  if (!mixture.dense_layers.empty()) {
    config[std::string(mixture.dense_layers)] =
        keys.integer("leading_dense_block_count").value_or(0);
  }
  if (!mixture.choice_flag.empty()) {
    config[std::string(mixture.choice_flag)] = has_choice_bias(header);
  }
  add_router(keys, mixture, config);
  const bool has_norms = has_tensor(header, "blk.0.attn_q_norm.weight");
  config["use_qk_norm"] =
      family.experts_without_norms > 0 ? experts != family.experts_without_norms : has_norms;
}

std::optional<std::string> expert_path(const Family& family, std::string_view part) {
  if (!family.experts) {
    return std::nullopt;
  }
  const Mixture& mixture = family.mixture;
  if (part == "ffn_gate_inp") {
    return fmt::format("{}.{}", mixture.scope, mixture.router);
  }
  if (part == "ffn_gate_inp_shexp" && !mixture.shared_gate.empty()) {
    return fmt::format("{}.{}", mixture.scope, mixture.shared_gate);
  }
  const auto shared_scope = mixture.shared_beside
                                ? std::string(mixture.shared)
                                : fmt::format("{}.{}", mixture.scope, mixture.shared);
  if (const auto shared = expert_part_path(kSharedParts, shared_scope, part)) {
    return mixture.shared.empty() ? std::nullopt : shared;
  }
  return expert_part_path(kStackParts, fmt::format("{}.{}", mixture.scope, mixture.stacks), part);
}

std::vector<TensorRole> expert_roles(const Family& family, std::string_view name) {
  if (family.biased_experts || family.two_kinds) {
    return named_expert_roles(family, name);
  }
  const auto layer = numbered_name(name, "blk.");
  if (!layer || !family.experts) {
    return {};
  }
  const Mixture& mixture = family.mixture;
  const auto path = [&](std::string_view rest) {
    return fmt::format("model.layers.{}.{}.{}", layer->number, mixture.scope, rest);
  };
  if (layer->rest == "exp_probs_b.bias" && !mixture.choice_bias.empty()) {
    return {{.name = path(mixture.choice_bias)}};
  }
  if (layer->rest == "ffn_gate_inp_shexp.weight" && !mixture.shared_gate.empty()) {
    return {{.name = path(mixture.shared_gate) + ".weight", .is_row = true}};
  }
  if (layer->rest != "ffn_gate_up_exps.weight") {
    return {};
  }
  // Each expert's rows of the gate come before those of up.
  std::vector<TensorRole> roles;
  for (const std::string_view projection : {"gate_proj", "up_proj"}) {
    roles.push_back({
        .name = path(fmt::format("{}.{}.weight", mixture.stacks, projection)),
        .part = static_cast<int>(roles.size()),
        .parts = 2,
    });
  }
  return roles;
}

void add_latent_attention(const Header& header, const Family& family, Json& config) {
  const Keys keys(header);
  add_latent_sizes(keys, config);
  add_score_factor(keys, config);
  if (family.kinds == LayerKinds::kAlike) {
    add_grouped_experts(header, keys, config);
  } else {
    add_experts(header, keys, family, config);
  }
}

bool is_behind_layers(const Header& header, std::string_view name) {
  const auto block = numbered_name(name, "blk.");
  return block && block->number >= layer_count(Keys(header));
}

}  // namespace saker::load::gguf
