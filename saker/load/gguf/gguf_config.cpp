// SPDX-License-Identifier: Apache-2.0
#include "saker/load/gguf/gguf_config.h"

#include "saker/base/error.h"
#include "saker/base/numbered_name.h"
#include "saker/base/utf8.h"
#include "saker/load/gguf/gguf_draft_head.h"
#include "saker/load/gguf/gguf_keys.h"
#include "saker/load/gguf/gguf_linear_attention.h"
#include "saker/load/gguf/gguf_moe.h"
#include "saker/load/gguf/gguf_names.h"
#include "saker/load/gguf/gguf_rope.h"
#include "saker/load/gguf/gguf_two_kinds.h"
#include "saker/models/embedding_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace saker::load::gguf {
namespace {

std::optional<std::string_view> renamed(std::span<const ModuleNames> names, std::string_view name) {
  const auto found = std::ranges::find(names, name, &ModuleNames::gguf);
  return found != names.end() ? std::optional(found->ours) : std::nullopt;
}

void add_sizes(const Header& header, const Family& family, const Keys& keys, Json& config) {
  config["hidden_size"] = keys.required("embedding_length");
  config["num_hidden_layers"] = layer_count(keys);
  config["num_attention_heads"] = head_count(keys);
  if (family.layer_norms) {
    config["layer_norm_eps"] = keys.number("attention.layer_norm_epsilon").value_or(1e-5);
  } else {
    config["rms_norm_eps"] = keys.number("attention.layer_norm_rms_epsilon").value_or(1e-6);
  }
  if (const auto context = keys.integer("context_length")) {
    config["max_position_embeddings"] = *context;
  }
  for (const TensorEntry& entry : header.tensors) {
    if (entry.name == "token_embd.weight" && entry.shape.size() == 2) {
      config["vocab_size"] = entry.shape.front();
    }
  }
  require(
      config.contains("vocab_size"),
      ErrorCode::kCorruptData,
      "{}: has no tensor 'token_embd.weight' with two dimensions",
      header.what()
  );
  config["tie_word_embeddings"] = !has_tensor(header, "output.weight");
}

// Sizes of layers that are all alike.
void add_layer_sizes(const Family& family, const Keys& keys, Json& config) {
  const auto hidden = config["hidden_size"].get<std::int64_t>();
  const auto heads = config["num_attention_heads"].get<std::int64_t>();
  const auto head_dim = keys.integer("attention.key_length").value_or(hidden / heads);
  const auto expect_head_dim = [&](std::string_view key) {
    const auto size = keys.integer(key).value_or(head_dim);
    keys.expect(
        size == head_dim, key, fmt::format("{}", size), fmt::format("a head's {}", head_dim)
    );
  };
  expect_head_dim("attention.value_length");
  if (family.joined || family.partial_rope) {
    const auto rotated = keys.integer("rope.dimension_count").value_or(head_dim);
    config["partial_rotary_factor"] =
        static_cast<double>(rotated) / static_cast<double>(std::max<std::int64_t>(head_dim, 1));
  } else if (!family.linear_attention && family.kinds != LayerKinds::kSingleParts) {
    expect_head_dim("rope.dimension_count");
  }
  config["intermediate_size"] = mlp_width(keys, family, config["num_hidden_layers"]);
  config["num_key_value_heads"] = kv_head_count(keys);
  config["head_dim"] = head_dim;
  config["rope_theta"] = keys.number("rope.freq_base").value_or(10000.0);
}

// Factors under the names of a folder's configuration.
void add_factors(const Keys& keys, const Family& family, Json& config) {
  const auto add = [&](std::string_view key, const char* ours) {
    if (const auto factor = keys.number(key)) {
      config[ours] = *factor;
    }
  };
  if (family.factors) {
    add("embedding_scale", "embedding_multiplier");
    add("residual_scale", "residual_multiplier");
    add("logit_scale", "logits_scaling");
    const auto head_dim = config["head_dim"].get<double>();
    config["attention_multiplier"] =
        keys.number("attention.scale").value_or(1.0 / std::sqrt(std::max(head_dim, 1.0)));
  }
  if (family.scaled_logits) {
    add("logit_scale", "logit_scale");
  }
}

// YaRN's factor of cos and sin is 1 in these files; queries are scaled from the original context on.
void add_query_scaling(const Keys& keys, const Family& family, Json& config) {
  const auto scaling = config.find("rope_scaling");
  if (!family.scaled_queries || scaling == config.end()) {
    return;
  }
  if (keys.number("rope.scaling.yarn_log_multiplier").value_or(0.0) > 0.0) {
    (*scaling)["mscale"] = 1.0;
    (*scaling)["mscale_all_dim"] = 1.0;
  }
  if (const auto beta = keys.number("attention.temperature_scale")) {
    (*scaling)["llama_4_scaling_beta"] = *beta;
  }
}

// The files lack some values, which follow from the model's sizes as in llama.cpp.
void add_query_scale(const Family& family, Json& config) {
  if (family.widest_layers == 0) {
    return;
  }
  const bool widest = config["num_hidden_layers"].get<std::int64_t>() == family.widest_layers;
  const auto hidden = config["hidden_size"].get<std::int64_t>();
  const auto heads = config["num_attention_heads"].get<std::int64_t>();
  config["query_pre_attn_scalar"] =
      widest ? hidden / heads : config["head_dim"].get<std::int64_t>();
}

// Which layers slide, by a flag for each.
void add_layer_windows(const Header& header, const Keys& keys, Json& config) {
  constexpr std::string_view kKey = "attention.sliding_window_pattern";
  const auto layers = config["num_hidden_layers"].get<std::size_t>();
  const std::vector<bool> flags = header.booleans(keys.full(kKey));
  keys.expect(
      flags.size() >= layers,
      kKey,
      fmt::format("{} flags", flags.size()),
      fmt::format("one for each of {} layers", layers)
  );
  Json types = Json::array();
  for (std::size_t i = 0; i < layers; ++i) {
    types.push_back(flags[i] ? "sliding_attention" : "full_attention");
  }
  config["layer_types"] = types;
}

void add_windows(const Header& header, const Keys& keys, const Family& family, Json& config) {
  if (family.windows) {
    config["sliding_window"] = keys.required("attention.sliding_window");
  }
  if (family.windows_by_layer) {
    add_layer_windows(header, keys, config);
  }
  if (!family.windowed_type.empty()) {
    const auto window = keys.integer("attention.sliding_window").value_or(0);
    config["sliding_window"] = window > 0 ? Json(window) : Json(nullptr);
    config["model_type"] = window > 0 ? family.windowed_type : family.model_type;
  }
  if (family.window_pattern > 0) {
    config["sliding_window_pattern"] = family.window_pattern;
    config["rope_local_base_freq"] = keys.number("rope.freq_base_swa").value_or(10000.0);
  }
}

void add_softcaps(const Keys& keys, const Family& family, Json& config) {
  if (family.softcaps) {
    config["attn_logit_softcapping"] = keys.number("attn_logit_softcapping").value_or(50.0);
    config["final_logit_softcapping"] = keys.number("final_logit_softcapping").value_or(30.0);
  }
}

void add_pooling(const Keys& keys, const Family& family, Json& config) {
  const bool causal = keys.boolean("attention.causal").value_or(!family.bidirectional);
  keys.expect(
      causal != family.bidirectional,
      "attention.causal",
      fmt::format("{}", causal),
      fmt::format("{}", !family.bidirectional)
  );
  if (family.bidirectional) {
    config["use_bidirectional_attention"] = true;
  }
  // llama.cpp's numbers; the others are no rule for vectors: 0 is none, 4 a classifier.
  constexpr std::array<std::string_view, 4> kPoolings{"", "mean", "cls", "last"};
  const std::int64_t type = keys.integer("pooling_type").value_or(0);
  if (type > 0 && type < static_cast<std::int64_t>(kPoolings.size())) {
    config[std::string(models::kTextEmbedding)] = {
        {"pooling", kPoolings.at(static_cast<std::size_t>(type))}
    };
  }
}

std::optional<std::int64_t> drafting_layer(
    const Family& family, const Keys& keys, std::string_view name
) {
  const auto block = numbered_name(name, "blk.");
  return family.linear_attention && block ? draft_head_layer(keys, block->number) : std::nullopt;
}

// The head's layers have the modules of the model's, besides its own ones.
std::optional<std::string> path_of(const Family& family, const Keys& keys, std::string_view name) {
  const auto layer = numbered_name(name, "blk.");
  if (!layer) {
    const auto path = renamed(kModelModules, name);
    return path ? std::optional(std::string(*path)) : std::nullopt;
  }
  if (family.joined && (layer->rest == "attn_qkv" || layer->rest == "ffn_up")) {
    return fmt::format(
        "model.layers.{}.{}",
        layer->number,
        layer->rest == "ffn_up" ? "mlp.gate_up_proj" : "self_attn.qkv_proj"
    );
  }
  const auto expert = expert_path(family, layer->rest);
  const auto own = renamed(family.modules, layer->rest);
  const auto part =
      expert ? std::optional<std::string_view>(*expert)
      : own  ? own
      : layer->rest == "ffn_norm"
          ? std::optional<std::string_view>(
                family.output_norms ? "pre_feedforward_layernorm" : "post_attention_layernorm"
            )
          : renamed(kLayerModules, layer->rest);
  if (const auto drafting = drafting_layer(family, keys, name)) {
    const bool is_own = !part || layer->rest.starts_with("nextn.");
    return is_own ? draft_head_path(*drafting, layer->rest)
                  : std::optional(fmt::format("mtp.layers.{}.{}", *drafting, *part));
  }
  return part ? std::optional(fmt::format("model.layers.{}.{}", layer->number, *part))
              : std::nullopt;
}

// Roles of tensors that only some families have, or have otherwise; empty for others.
std::vector<TensorRole> special_roles(
    const Family& family, const Keys& keys, std::string_view name
) {
  const auto role = family.linear_attention ? linear_attention_role(family, keys, name)
                    : family.two_kinds      ? two_kinds_role(name)
                                            : hybrid_role(family, name);
  if (role) {
    return {*role};
  }
  return expert_roles(family, name);
}

}  // namespace

Json model_config(const Header& header, const Family& family, std::span<const float> rope_factors) {
  require(
      header.string("general.type") != "adapter",
      ErrorCode::kInvalidArgument,
      "{}: is an adapter, expected a model; --adapter takes such a file",
      header.what()
  );
  const Keys keys(header);
  Json config = Json::object();
  config["model_type"] = family.model_type;
  add_sizes(header, family, keys, config);
  if (family.joined) {
    add_layer_sizes(family, keys, config);
    add_long_rope(header, rope_factors, config);
  } else {
    add_rope_scaling(keys, config);
  }
  if (family.two_kinds) {
    add_two_kinds(header, rope_factors, config);
  } else if (!family.latents && !family.joined) {
    add_layer_sizes(family, keys, config);
    if (!rope_factors.empty()) {
      add_rope_factors(header, rope_factors, config);
    }
  }
  family.latents ? add_latent_attention(header, family, config)
                 : add_experts(header, keys, family, config);
  if (family.activation != Family{}.activation) {
    config["hidden_activation"] = family.activation;
  }
  config["hidden_act"] = family.activation;
  add_query_scale(family, config);
  add_windows(header, keys, family, config);
  add_softcaps(keys, family, config);
  add_factors(keys, family, config);
  add_query_scaling(keys, family, config);
  add_pooling(keys, family, config);
  add_hybrid(keys, family, config);
  if (family.kinds == LayerKinds::kBoth) {
    config["mamba_rms_norm"] = has_tensor(header, "blk.0.ssm_norm.weight");
  }
  if (!family.flag.empty()) {
    config[std::string(family.flag)] = true;
  }
  if (family.linear_attention) {
    add_linear_attention(header, keys, config);
    add_draft_head(header, keys, config);
  }
  return config;
}

bool is_rope_table(std::string_view name) {
  return name == "rope_freqs.weight" || name.starts_with("rope_factors_") ||
         name.ends_with(".attn_rot_embd");
}

std::string_view rope_table(const Header& header, const Family& family) {
  if (!family.joined) {
    return "rope_freqs.weight";
  }
  const Keys keys(header);
  const auto context = keys.integer("context_length").value_or(0);
  return context > keys.integer("rope.scaling.original_context_length").value_or(context)
             ? "rope_factors_long.weight"
             : "rope_factors_short.weight";
}

namespace {

// Tensors behind the model's layers that are not read.
bool is_left_out(const Header& header, const Family& family, std::string_view name) {
  if (family.linear_attention || !is_behind_layers(header, name)) {
    return false;
  }
  const bool is_copy = name.find(".nextn.embed_tokens.") != std::string_view::npos ||
                       name.find(".nextn.shared_head_head.") != std::string_view::npos;
  const Keys keys(header);
  const auto block = numbered_name(name, "blk.");
  const bool is_next = family.next_layer && block->number == layer_count(keys) && !is_copy;
  return !is_next && (family.latents || keys.integer("nextn_predict_layers").value_or(0) > 0);
}

}  // namespace

std::vector<TensorRole> roles_of(
    const Header& header, const Family& family, std::string_view name
) {
  if (is_rope_table(name) || is_left_out(header, family, name)) {
    return {};
  }
  const Keys keys(header);
  if (auto roles = special_roles(family, keys, name); !roles.empty()) {
    return roles;
  }
  const auto dot = name.rfind('.');
  const std::string_view leaf = dot == std::string_view::npos ? "" : name.substr(dot + 1);
  const auto path = path_of(family, keys, name.substr(0, dot));
  if (!path && drafting_layer(family, keys, name)) {
    return {};
  }
  require(
      path.has_value() && (leaf == "weight" || leaf == "bias"),
      ErrorCode::kUnsupported,
      "{}: tensor {} is none that a model of architecture {} has",
      header.what(),
      quote(name),
      family.name
  );
  TensorRole role{.name = fmt::format("{}.{}", *path, leaf)};
  if (family.rotated_pairs && path->ends_with(".q_proj")) {
    role.rotated_heads = static_cast<int>(head_count(keys));
  } else if (family.rotated_pairs && path->ends_with(".k_proj")) {
    role.rotated_heads = static_cast<int>(kv_head_count(keys));
  }
  role.plus_one = family.norms_plus_one && path->ends_with("norm");
  return {std::move(role)};
}

}  // namespace saker::load::gguf
