// SPDX-License-Identifier: Apache-2.0
#pragma once

// Small configurations of models with Kimi Delta Attention and of their relatives, and those layers'
// tensors.

#include "saker/base/json/json.h"

#include "tests/nn/random_weights.h"
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <string>
#include <string_view>

namespace saker::models {

// How small configurations of these architectures differ from others.
inline Json kda_changes(std::string_view model_type) {
  if (model_type.starts_with("bailing_moe")) {
    return {
        {"use_qk_norm", true},
        {"score_function", "sigmoid"},
        {"moe_router_enable_expert_bias", true},
        {"first_k_dense_replace", 1},
    };
  }
  if (model_type == "bailing_hybrid") {
    return {{"num_hidden_layers", 4}, {"layer_group_size", 2}, {"short_conv_kernel_size", 3}};
  }
  if (model_type == "kimi_linear") {
    return {
        {"num_hidden_layers", 4},
        {"linear_attn_config",
         {{"kda_layers", {1, 3, 4}},
          {"full_attn_layers", {2}},
          {"num_heads", 2},
          {"head_dim", 32},
          {"short_conv_kernel_size", 3}}},
    };
  }
  return Json::object();
}

// Tensors of Kimi Delta Attention, by the adders of random_tensors(). Projections of other layers may
// have the same names: those that are added last count. `sizes`: heads, a head's size and taps.
inline void add_kda(
    nn::RandomWeights& random,
    const std::string& scope,
    int hidden,
    const std::array<int, 3>& sizes,
    const std::function<void(const std::string& path, int outputs, int inputs)>& add_linear
) {
  const auto [heads, dim, taps] = sizes;
  for (const std::string name : {"q", "k", "v"}) {
    add_linear(scope + name + "_proj", heads * dim, hidden);
    random.add_tensor(fmt::format("{}{}_conv1d.weight", scope, name), {heads * dim, 1, taps});
  }
  for (const std::string name : {"f", "g"}) {
    add_linear(scope + name + "_proj", heads * dim, hidden);
    add_linear(scope + name + "_a_proj", dim, hidden);
    add_linear(scope + name + "_b_proj", heads * dim, dim);
  }
  add_linear(scope + "b_proj", heads, hidden);
  add_linear(scope + "o_proj", hidden, heads * dim);
  random.add_tensor(scope + "A_log", {1, 1, heads, 1});
  random.add_vector(scope + "dt_bias", heads * dim, 0.0F, 0.5F);
  random.add_vector(scope + "o_norm.weight", dim, 1.0F, 0.2F);
}

// As above, of the layers of these architectures.
inline void add_kda_layer(
    nn::RandomWeights& random,
    const Json& config,
    int index,
    const std::function<void(const std::string& path, int outputs, int inputs)>& add_linear
) {
  const auto size = [&](std::string_view key) {
    return static_cast<int>(json_int(config, key, 0));
  };
  const auto model_type = json_string(config, "model_type", "");
  const auto layer = fmt::format("model.layers.{}.", index);
  const int hidden = size("hidden_size");
  if (model_type == "kimi_linear") {
    const Json& section = config["linear_attn_config"];
    const auto of = [&](std::string_view key) {
      return static_cast<int>(json_int(section, key, 0));
    };
    const auto& linear = section["kda_layers"];
    if (std::ranges::find(linear, Json(index + 1)) != linear.end()) {
      add_kda(
          random,
          layer + "self_attn.",
          hidden,
          {of("num_heads"), of("head_dim"), of("short_conv_kernel_size")},
          add_linear
      );
    }
  } else if (model_type.starts_with("bailing")) {
    const int heads = size("num_attention_heads");
    const int dim = size("head_dim");
    random.add_vector(layer + "mlp.gate.expert_bias", size("num_experts"), 0.0F, 0.3F);
    if (model_type != "bailing_hybrid") {
      const int all = heads + 2 * size("num_key_value_heads");
      add_linear(layer + "attention.query_key_value", all * dim, hidden);
      add_linear(layer + "attention.dense", hidden, heads * dim);
      for (const auto* norm : {"query_layernorm", "key_layernorm"}) {
        random.add_vector(fmt::format("{}attention.{}.weight", layer, norm), dim, 1.0F, 0.2F);
      }
    } else if ((index + 1) % size("layer_group_size") != 0) {
      add_kda(
          random,
          layer + "attention.",
          hidden,
          {heads, dim, size("short_conv_kernel_size")},
          add_linear
      );
    }
  }
}

}  // namespace saker::models
