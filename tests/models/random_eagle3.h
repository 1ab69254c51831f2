// SPDX-License-Identifier: Apache-2.0
#pragma once

// EAGLE-3 heads with random weights for the random models, and those of tests/golden.

#include "saker/models/eagle3.h"

#include "tests/models/random_model.h"
#include <fmt/format.h>

#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace saker::models {

// Made by tools/make_eagle3_goldens.py.
inline constexpr const char* kEagle3Goldens[] = {"flat", "optimizer", "speculators", "final"};

// For a model of small_config: it knows 40 of 50 tokens.
inline Json small_eagle3_config() {
  return {
      {"architectures", {"LlamaForCausalLMEagle3"}},
      {"model_type", "llama"},
      {"hidden_size", 32},
      {"num_hidden_layers", 1},
      {"intermediate_size", 48},
      {"num_attention_heads", 4},
      {"num_key_value_heads", 2},
      {"head_dim", 8},
      {"vocab_size", 50},
      {"draft_vocab_size", 40},
      {"rms_norm_eps", 1e-5},
  };
}

// As vLLM's speculators have it: narrower than its target, of two layers, with all norms.
inline Json small_speculators_config() {
  Json layer = small_eagle3_config();
  layer.erase("architectures");
  layer.erase("draft_vocab_size");
  layer["hidden_size"] = 24;
  layer["num_hidden_layers"] = 2;
  layer["layer_types"] = {"sliding_attention", "full_attention"};
  layer["sliding_window"] = 9;
  return {
      {"architectures", {"Eagle3Speculator"}},
      {"speculators_model_type", "eagle3"},
      {"draft_vocab_size", 40},
      {"target_hidden_size", 32},
      {"eagle_aux_hidden_state_layer_ids", {0, 1, 2}},
      {"norm_before_fc", true},
      {"fc_norm", true},
      {"norm_output", true},
      {"transformer_layer_config", layer},
  };
}

inline Tensor int_tensor(const std::vector<std::int64_t>& values) {
  const auto size = values.size() * sizeof(std::int64_t);
  auto bytes = std::make_shared<std::vector<std::byte>>(size);
  std::memcpy(bytes->data(), values.data(), size);
  Tensor tensor;
  tensor.dtype = DType::kInt64;
  tensor.shape = {static_cast<std::int64_t>(values.size())};
  tensor.data = std::shared_ptr<const std::byte>(bytes, bytes->data());
  return tensor;
}

inline nn::TensorMap random_eagle3_tensors(
    const Json& json, unsigned seed = 0, const kernels::WeightFormat& format = {}
) {
  const Eagle3Config config = read_eagle3_config(json);
  const DecoderConfig& decoder = config.decoder;
  nn::RandomWeights random(format, seed);
  const auto add_norm = [&](const std::string& path, int width) {
    random.add_vector(path + ".weight", width, 1.0F, 0.2F);
  };
  const int hidden = decoder.hidden;
  const int taps = config.tap_count * config.target_hidden;
  if (config.reads_layers) {
    random.add_linear("fc", hidden, taps);
  }
  if (config.norm_before_fc) {
    add_norm("input_norm", taps);
  }
  for (int i = 0; config.norm_each_tap && i < config.tap_count; ++i) {
    add_norm(fmt::format("fc_norm.{}", i), config.target_hidden);
  }
  add_norm("norm", hidden);
  add_norm("layers.0.hidden_norm", hidden);
  for (int i = 0; i < static_cast<int>(decoder.layers.size()); ++i) {
    const auto layer = fmt::format("layers.{}.", i);
    const int input = i == 0 ? 2 * hidden : hidden;
    add_norm(layer + "input_layernorm", hidden);
    add_norm(layer + "post_attention_layernorm", hidden);
    random.add_linear(layer + "self_attn.q_proj", decoder.heads * decoder.head_dim, input);
    random.add_linear(layer + "self_attn.k_proj", decoder.kv_heads * decoder.head_dim, input);
    random.add_linear(layer + "self_attn.v_proj", decoder.kv_heads * decoder.head_dim, input);
    random.add_linear(layer + "self_attn.o_proj", hidden, decoder.heads * decoder.head_dim);
    random.add_linear(layer + "mlp.gate_proj", decoder.intermediate, hidden);
    random.add_linear(layer + "mlp.up_proj", decoder.intermediate, hidden);
    random.add_linear(layer + "mlp.down_proj", hidden, decoder.intermediate);
  }
  if (hidden != config.target_hidden) {
    random.add_linear("embed_tokens", decoder.vocab_size, hidden);
  }
  const bool is_whole = config.draft_vocab_size == decoder.vocab_size;
  if (!is_whole || hidden != config.target_hidden) {
    random.add_linear("lm_head", config.draft_vocab_size, hidden);
  }
  nn::TensorMap tensors = random.tensors();
  if (!is_whole) {
    // The last tokens of the vocabulary, but for the first half.
    std::vector<std::int64_t> offsets;
    for (int i = 0; i < config.draft_vocab_size; ++i) {
      const bool late = i >= config.draft_vocab_size / 2;
      offsets.push_back(late ? decoder.vocab_size - config.draft_vocab_size : 0);
    }
    tensors["d2t"] = int_tensor(offsets);
  }
  return tensors;
}

inline std::unique_ptr<const Eagle3Head> eagle3_of(
    const Json& config, const ModelInfo& target, nn::TensorMap tensors
) {
  const nn::Weights weights(eagle3_tensors(std::move(tensors)), {});
  return std::make_unique<const Eagle3Head>(read_eagle3_config(config), target, weights);
}

// By small_eagle3_config or small_speculators_config, made for this target.
inline std::unique_ptr<const Eagle3Head> random_eagle3(
    Json config,
    const ModelInfo& target,
    unsigned seed = 0,
    const kernels::WeightFormat& format = {}
) {
  Json& layer =
      config.contains("transformer_layer_config") ? config["transformer_layer_config"] : config;
  layer["vocab_size"] = target.vocab_size;
  config["draft_vocab_size"] = target.vocab_size - 10;
  if (config.contains("target_hidden_size")) {
    config["target_hidden_size"] = target.hidden_size;
  } else {
    layer["hidden_size"] = target.hidden_size;
  }
  return eagle3_of(config, target, random_eagle3_tensors(config, seed, format));
}

}  // namespace saker::models
