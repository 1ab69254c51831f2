// SPDX-License-Identifier: Apache-2.0
#pragma once

// Gemma 4 assistants with random weights for the random models of that family.

#include "saker/models/assistant.h"

#include "tests/models/random_model.h"
#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace saker::models {

// Of a model of small_config: one layer of each kind.
inline Json small_assistant_config(bool grouped = false) {
  Json config = {
      {"model_type", "gemma4_assistant"},
      {"backbone_hidden_size", 32},
      {"tie_word_embeddings", true},
      {"text_config",
       {{"model_type", "gemma4_text"},
        {"hidden_size", 24},
        {"num_hidden_layers", 2},
        {"num_kv_shared_layers", 2},
        {"intermediate_size", 40},
        {"num_attention_heads", 4},
        {"num_key_value_heads", 2},
        {"head_dim", 8},
        {"global_head_dim", 16},
        {"vocab_size", 50},
        {"sliding_window", 11},
        {"hidden_size_per_layer_input", 0},
        {"layer_types", {"sliding_attention", "full_attention"}}}},
  };
  if (grouped) {
    config.update(
        {{"use_ordered_embeddings", true}, {"num_centroids", 10}, {"centroid_intermediate_top_k", 4}
        }
    );
  }
  return config;
}

inline nn::TensorMap random_assistant_tensors(const Json& json, unsigned seed = 0) {
  const AssistantConfig config = read_assistant_config(json);
  const DecoderConfig& decoder = config.decoder;
  const int hidden = decoder.hidden;
  nn::RandomWeights random({.kind = kernels::WeightKind::kFloat32}, seed);
  const auto add_norm = [&](const std::string& path, int width) {
    random.add_vector(path + ".weight", width, 1.0F, 0.2F);
  };
  random.add_linear("pre_projection", hidden, 2 * config.target_hidden);
  random.add_linear("post_projection", config.target_hidden, hidden);
  random.add_linear("model.embed_tokens", decoder.vocab_size, hidden);
  add_norm("model.norm", hidden);
  for (std::size_t i = 0; i < decoder.layers.size(); ++i) {
    const auto layer = fmt::format("model.layers.{}.", i);
    const int head_dim = decoder.head_dim_of(decoder.layers[i]);
    for (const auto* norm :
         {"input_layernorm",
          "post_attention_layernorm",
          "pre_feedforward_layernorm",
          "post_feedforward_layernorm"}) {
      add_norm(layer + norm, hidden);
    }
    add_norm(layer + "self_attn.q_norm", head_dim);
    random.add_linear(layer + "self_attn.q_proj", decoder.heads * head_dim, hidden);
    random.add_linear(layer + "self_attn.o_proj", hidden, decoder.heads * head_dim);
    random.add_linear(layer + "mlp.gate_proj", decoder.intermediate, hidden);
    random.add_linear(layer + "mlp.up_proj", decoder.intermediate, hidden);
    random.add_linear(layer + "mlp.down_proj", hidden, decoder.intermediate);
    random.add_vector(layer + "layer_scalar", 1, 0.9F, 0.1F);
  }
  if (config.centroids > 0) {
    random.add_linear("masked_embedding.centroids", config.centroids, hidden);
  }
  auto tensors = random.tensors();
  if (config.centroids > 0) {
    // Each token once: 7 and 50 have no common divisor.
    std::vector<std::int64_t> order(static_cast<std::size_t>(decoder.vocab_size));
    for (std::size_t i = 0; i < order.size(); ++i) {
      order[i] = static_cast<std::int64_t>(i * 7 % order.size());
    }
    tensors["masked_embedding.token_ordering"] =
        nn::make_tensor(DType::kInt64, {decoder.vocab_size}, order);
  }
  return tensors;
}

inline std::unique_ptr<const AssistantDraft> random_assistant(
    const Json& config, const ModelInfo& target
) {
  return std::make_unique<const AssistantDraft>(
      read_assistant_config(config), target, nn::Weights(random_assistant_tensors(config), {})
  );
}

}  // namespace saker::models
