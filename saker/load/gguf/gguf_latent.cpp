// SPDX-License-Identifier: Apache-2.0
// Models with latent attention: sizes of heads, which files give for the cached rows and for the
// expanded form, and a mixture with groups and a shared expert.
#include "saker/base/numbered_name.h"
#include "saker/load/gguf/gguf_config.h"
#include "saker/load/gguf/gguf_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string_view>

namespace saker::load::gguf {
namespace {

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

void add_mixture(const Header& header, const Keys& keys, Json& config) {
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

void add_latent_attention(const Header& header, Json& config) {
  const Keys keys(header);
  add_latent_sizes(keys, config);
  add_score_factor(keys, config);
  add_mixture(header, keys, config);
}

bool is_behind_layers(const Header& header, std::string_view name) {
  const auto block = numbered_name(name, "blk.");
  return block && block->number >= layer_count(Keys(header));
}

}  // namespace saker::load::gguf
