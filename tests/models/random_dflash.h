// SPDX-License-Identifier: Apache-2.0
#pragma once

// DFlash drafts with random weights for the random models, and where those of tests/golden are.

#include "saker/models/dflash.h"

#include "tests/models/random_model.h"
#include <fmt/format.h>

#include <memory>
#include <string>

namespace saker::models {

// What a package drafted with a draft of tests/golden/dflash: tools/make_dflash_goldens.py, or
// tools/make_dflash_mlx_goldens.py.
struct DflashGoldenFile {
  const char* name;
  const char* folder;
  const char* file = "golden.safetensors";
};

inline constexpr DflashGoldenFile kDflashGoldens[] = {
    {"legacy", "legacy"},
    {"nested", "nested"},
    {"root", "root"},
    {"second", "second"},
    {"legacy_mlx", "legacy", "golden_mlx.safetensors"},
    {"nested_mlx", "nested", "golden_mlx.safetensors"},
};

// Of a model of small_config: two layers, one of which slides.
inline Json small_dflash_config(bool second = false) {
  Json config = {
      {"model_type", "qwen3"},
      {"hidden_size", 32},
      {"num_hidden_layers", 2},
      {"intermediate_size", 48},
      {"num_attention_heads", 4},
      {"num_key_value_heads", 2},
      {"head_dim", 8},
      {"vocab_size", 50},
      {"rope_theta", 10000.0},
      {"layer_types", {"sliding_attention", "full_attention"}},
      {"sliding_window", 9},
      {"num_target_layers", 2},
      {"dflash_config", {{"block_size", 8}, {"mask_token_id", 49}, {"target_layer_ids", {1, 0}}}},
  };
  if (second) {
    config["dflash_config"].update(
        {{"conv_kernel_size", 3},
         {"conv_group_size", 4},
         {"selector_rank", 6},
         {"selector_top_k", 5}}
    );
  }
  return config;
}

inline nn::TensorMap random_dflash_tensors(
    const Json& json, unsigned seed, const kernels::WeightFormat& format = {}
) {
  const DflashConfig config = read_dflash_config(json);
  const DecoderConfig& decoder = config.decoder;
  nn::RandomWeights random(format, seed);
  const auto add_norm = [&](const std::string& path, int width) {
    random.add_vector(path + ".weight", width, 1.0F, 0.2F);
  };
  const int hidden = decoder.hidden;
  random.add_linear("fc", hidden, hidden * static_cast<int>(config.target_layers.size()));
  add_norm("hidden_norm", hidden);
  add_norm("norm", hidden);
  for (int i = 0; i < static_cast<int>(decoder.layers.size()); ++i) {
    const auto layer = fmt::format("layers.{}.", i);
    add_norm(layer + "input_layernorm", hidden);
    add_norm(layer + "post_attention_layernorm", hidden);
    add_norm(layer + "self_attn.q_norm", decoder.head_dim);
    add_norm(layer + "self_attn.k_norm", decoder.head_dim);
    random.add_linear(layer + "self_attn.q_proj", decoder.heads * decoder.head_dim, hidden);
    random.add_linear(layer + "self_attn.k_proj", decoder.kv_heads * decoder.head_dim, hidden);
    random.add_linear(layer + "self_attn.v_proj", decoder.kv_heads * decoder.head_dim, hidden);
    random.add_linear(layer + "self_attn.o_proj", hidden, decoder.heads * decoder.head_dim);
    random.add_linear(layer + "mlp.gate_proj", decoder.intermediate, hidden);
    random.add_linear(layer + "mlp.up_proj", decoder.intermediate, hidden);
    random.add_linear(layer + "mlp.down_proj", hidden, decoder.intermediate);
    if (config.second) {
      const int taps = config.second->conv_taps;
      for (const auto* conv : {"attention_conv", "mlp_conv"}) {
        random.add_tensor(layer + conv + ".base_kernel", {2, taps, hidden});
        random.add_linear(
            layer + conv + ".kernel_projection",
            2 * taps * hidden / config.second->conv_group,
            hidden
        );
      }
    }
  }
  if (config.second) {
    const int rank = config.second->selector_rank;
    random.add_linear("candidate_selector.hidden_projection", rank, hidden);
    random.add_tensor("candidate_selector.predecessor_codebook", {decoder.vocab_size, rank});
    random.add_tensor("candidate_selector.successor_codebook", {decoder.vocab_size, rank});
  }
  return random.tensors();
}

inline std::unique_ptr<const DflashDraft> random_dflash(
    const Json& config, unsigned seed = 0, const kernels::WeightFormat& format = {}
) {
  const nn::Weights weights(dflash_tensors(random_dflash_tensors(config, seed, format)), {});
  return std::make_unique<const DflashDraft>(read_dflash_config(config), weights);
}

}  // namespace saker::models
