// SPDX-License-Identifier: Apache-2.0
#pragma once

// Models with random weights, made in memory from a configuration.

#include "saker/base/json/json.h"
#include "saker/models/decoder_config.h"
#include "saker/models/model.h"

#include "tests/models/gate_tensors.h"
#include "tests/models/hybrid_tensors.h"
#include "tests/models/layer_sizes.h"
#include "tests/models/random_experts.h"
#include "tests/models/small_config.h"
#include "tests/nn/random_weights.h"
#include <fmt/format.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace saker::models {

struct RandomModelOptions {
  kernels::WeightFormat format{.kind = kernels::WeightKind::kFloat32};
  bool biases = false;
  unsigned seed = 0;
};

// Tensors of a layer of linear attention, by the adders of random_tensors().
inline void add_linear_attention(
    nn::RandomWeights& random,
    const Json& config,
    const std::string& scope,
    const std::function<void(const std::string& path, int outputs, int inputs)>& add_linear
) {
  const auto size = [&](std::string_view key) {
    return static_cast<int>(json_int(config, key, 0));
  };
  const int hidden = size("hidden_size");
  const int delta_values = size("linear_num_value_heads") * size("linear_value_head_dim");
  const int channels =
      2 * size("linear_num_key_heads") * size("linear_key_head_dim") + delta_values;
  if (json_string(config, "model_type", "") == "qwen3_next") {
    add_linear(scope + "in_proj_qkvz", channels + delta_values, hidden);
    add_linear(scope + "in_proj_ba", 2 * size("linear_num_value_heads"), hidden);
  } else {
    add_linear(scope + "in_proj_qkv", channels, hidden);
    add_linear(scope + "in_proj_z", delta_values, hidden);
    add_linear(scope + "in_proj_a", size("linear_num_value_heads"), hidden);
    add_linear(scope + "in_proj_b", size("linear_num_value_heads"), hidden);
  }
  add_linear(scope + "out_proj", hidden, delta_values);
  random.add_tensor(scope + "conv1d.weight", {channels, size("linear_conv_kernel_dim"), 1});
  random.add_vector(scope + "A_log", size("linear_num_value_heads"), 0.0F, 0.5F);
  random.add_vector(scope + "dt_bias", size("linear_num_value_heads"), 0.0F, 0.5F);
  random.add_vector(scope + "norm.weight", size("linear_value_head_dim"), 1.0F, 0.2F);
}

// Tensors of latent attention, by the adders of random_tensors().
inline void add_latent_attention(
    nn::RandomWeights& random,
    const Json& config,
    const std::string& scope,
    const std::function<void(const std::string& path, int outputs, int inputs)>& add_linear
) {
  const auto size = [&](std::string_view key) {
    return static_cast<int>(json_int(config, key, 0));
  };
  const int hidden = size("hidden_size");
  const int rank = size("kv_lora_rank");
  const int heads = size("num_attention_heads");
  const int plain = size("qk_nope_head_dim");
  const int queries = heads * (plain + size("qk_rope_head_dim"));
  const bool direct = config["q_lora_rank"].is_null();
  const int query_rank = direct ? 0 : size("q_lora_rank");
  add_linear(scope + "q_proj", queries, hidden);
  if (!direct) {
    add_linear(scope + "q_a_proj", query_rank, hidden);
    random.add_linear(scope + "q_b_proj", queries, query_rank);
    random.add_vector(scope + "q_a_layernorm.weight", query_rank, 1.0F, 0.2F);
  }
  add_linear(scope + "kv_a_proj_with_mqa", rank + size("qk_rope_head_dim"), hidden);
  random.add_vector(scope + "kv_a_layernorm.weight", rank, 1.0F, 0.2F);
  random.add_linear(scope + "kv_b_proj", heads * (plain + size("v_head_dim")), rank);
  for (const auto* output : {"o_proj", "dense"}) {
    add_linear(scope + output, hidden, heads * size("v_head_dim"));
  }
  add_linear(scope + "g_proj", heads, hidden);
}

// All tensors that any of the architectures could ask for.
inline nn::TensorMap random_tensors(const Json& config, const RandomModelOptions& options) {
  const auto size = [&](std::string_view key) {
    return static_cast<int>(json_int(config, key, 0));
  };
  const int hidden = size("hidden_size");
  const auto model_type = json_string(config, "model_type", "");
  const bool offset = model_type.starts_with("gemma") && !is_gemma4(model_type);
  nn::RandomWeights random(options.format, options.seed);
  const auto add_norm = [&](const std::string& path, int width) {
    random.add_vector(path + ".weight", width, offset ? 0.0F : 1.0F, 0.2F);
  };
  const auto add_linear = [&](const std::string& path, int outputs, int inputs) {
    random.add_linear(path, outputs, inputs);
    if (options.biases) {
      random.add_vector(path + ".bias", outputs, 0.0F, 0.2F);
    }
  };
  random.add_linear("model.embed_tokens", size("vocab_size"), hidden);
  random.add_linear("lm_head", size("vocab_size"), hidden);
  for (const auto* name :
       {"model.norm", "model.embedding_norm", "model.norm_f", "model.final_layernorm"}) {
    add_norm(name, hidden);
  }
  const int inputs = size("hidden_size_per_layer_input");
  if (inputs > 0) {
    const int all = inputs * size("num_hidden_layers");
    random.add_linear("model.embed_tokens_per_layer", size("vocab_size"), all);
    add_linear("model.per_layer_model_projection", all, hidden);
    add_norm("model.per_layer_projection_norm", inputs);
  }
  for (int i = 0; i < size("num_hidden_layers"); ++i) {
    const auto layer = fmt::format("model.layers.{}.", i);
    const auto [head_dim, kv_head_count, intermediate] = layer_sizes(config, i);
    const int heads = size("num_attention_heads") * head_dim;
    const int kv_heads = kv_head_count * head_dim;
    if (inputs > 0) {
      add_linear(layer + "per_layer_input_gate", inputs, hidden);
      add_linear(layer + "per_layer_projection", hidden, inputs);
      add_norm(layer + "post_per_layer_input_norm", hidden);
      random.add_vector(layer + "layer_scalar", 1, 0.9F, 0.1F);
    }
    for (const auto* norm :
         {"input_layernorm",
          "post_attention_layernorm",
          "pre_feedforward_layernorm",
          "post_feedforward_layernorm"}) {
      add_norm(layer + norm, hidden);
    }
    const bool joined = has_joined_norms(model_type);
    add_norm(layer + "self_attn.q_norm", joined ? heads : head_dim);
    add_norm(layer + "self_attn.k_norm", joined ? kv_heads : head_dim);
    add_norm(layer + "self_attn.query_layernorm", head_dim);
    add_norm(layer + "self_attn.key_layernorm", head_dim);
    add_linear(layer + "self_attn.qkv_proj", heads + 2 * kv_heads, hidden);
    add_linear(layer + "mlp.gate_up_proj", 2 * intermediate, hidden);
    const bool hybrid = is_hybrid(model_type);
    add_linear(layer + "self_attn.q_proj", hybrid ? 2 * heads : heads, hidden);
    add_linear(layer + "self_attn.k_proj", kv_heads, hidden);
    add_linear(layer + "self_attn.v_proj", kv_heads, hidden);
    add_linear(layer + "self_attn.o_proj", hidden, heads);
    add_linear(layer + "mlp.gate_proj", intermediate, hidden);
    add_linear(layer + "mlp.up_proj", intermediate, hidden);
    add_linear(layer + "mlp.down_proj", hidden, intermediate);
    add_linear_attention(random, config, layer + "linear_attn.", add_linear);
    if (has_latents(model_type)) {
      const auto* scope = model_type == "bailing_hybrid" ? "attention." : "self_attn.";
      add_latent_attention(random, config, layer + scope, add_linear);
    }
    add_hybrid_layer(random, config, i, add_linear);
    GateTensors{random, config, add_linear}.add_to(layer);
    const RandomExperts mixture{random, hidden, size("moe_intermediate_size"), size("num_experts")};
    mixture.add_to(layer);
    if (model_type == "gpt_oss") {
      mixture.add_gpt_oss(layer, size("num_attention_heads"), options.biases);
    }
    if (json_bool(config, "enable_moe_block", false)) {
      mixture.add_beside(layer);
    }
  }
  return random.tensors();
}

inline std::unique_ptr<const Model> random_model(
    const Json& config, const RandomModelOptions& options
) {
  return make_model(config, nn::Weights(random_tensors(config, options), {}), {});
}

// Logits [n, V] of `ids` in one pass over one sequence, committed.
inline mx::array run_rows(
    const Model& model, cache::SequenceCache& cache, const std::vector<int>& ids
) {
  nn::ForwardContext context({{&cache, static_cast<int>(ids.size())}});
  cache.begin();
  const auto tokens = mx::array(ids.data(), {static_cast<int>(ids.size())}, mx::int32);
  auto logits = model.unembed(model.forward(tokens, context), context.adapters());
  mx::eval(logits);
  cache.commit(static_cast<std::int64_t>(ids.size()));
  return logits;
}

}  // namespace saker::models
