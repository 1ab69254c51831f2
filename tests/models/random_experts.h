// SPDX-License-Identifier: Apache-2.0
#pragma once

// Random tensors of mixtures of experts, under the names of every architecture.

#include "saker/base/json/json.h"

#include "tests/nn/random_weights.h"
#include <fmt/format.h>

#include <array>
#include <string>
#include <string_view>

namespace saker::models {

struct RandomExperts {
  nn::RandomWeights& random;
  int hidden;
  int width;  // Of an expert, and of one that all tokens share.
  int experts;

  void add_linear(const std::string& path, int outputs, int inputs) const {
    random.add_linear(path, outputs, inputs);
  }

  void add_mlp(const std::string& scope, const std::array<const char*, 3>& names) const {
    add_linear(scope + names[0], width, hidden);
    add_linear(scope + names[1], width, hidden);
    add_linear(scope + names[2], hidden, width);
  }

  void add_single(const std::string& scope, const std::array<const char*, 3>& names) const {
    for (int expert = 0; expert < experts; ++expert) {
      add_mlp(fmt::format("{}experts.{}.", scope, expert), names);
    }
  }

  // `layer`: the layer's scope, with its dot.
  void add_to(const std::string& layer) const {
    constexpr std::array kProjections{"gate_proj", "up_proj", "down_proj"};
    const std::string mlp = layer + "mlp.";
    add_single(mlp, kProjections);
    for (const auto* name : {"gate", "gate.wg"}) {
      add_linear(mlp + name, experts, hidden);
    }
    for (const auto* name : {"shared_expert.", "shared_experts.", "shared_mlp."}) {
      add_mlp(mlp + name, kProjections);
    }
    add_linear(mlp + "shared_expert_gate", 1, hidden);
    random.add_vector(mlp + "gate.e_score_correction_bias", experts, 0.0F, 0.2F);
    random.add_vector(mlp + "moe_statics.e_score_correction_bias", experts, 0.0F, 0.2F);
    const std::string sparse = layer + "block_sparse_moe.";
    add_single(sparse, {"w1", "w3", "w2"});
    for (const auto* name : {"gate", "router.layer"}) {
      add_linear(sparse + name, experts, hidden);
    }
    random.add_vector(sparse + "e_score_correction_bias", experts, 0.0F, 0.2F);
    random.add_vector(sparse + "gate.e_score_correction_bias", experts, 0.0F, 0.2F);
    add_mlp(sparse + "shared_experts.", kProjections);
    random.add_tensor(sparse + "input_linear.weight", {experts, 2 * width, hidden});
    random.add_tensor(sparse + "output_linear.weight", {experts, hidden, width});
  }

  // What gpt-oss has besides: biases of experts, a router of another name, attention sinks.
  void add_gpt_oss(const std::string& layer, int heads, bool biases) const {
    add_linear(layer + "mlp.router", experts, hidden);
    random.add_vector(layer + "self_attn.sinks", heads, 0.0F, 2.0F);
    if (!biases) {
      return;
    }
    random.add_vector(layer + "mlp.router.bias", experts, 0.0F, 4.0F);
    for (int expert = 0; expert < experts; ++expert) {
      const auto scope = fmt::format("{}mlp.experts.{}.", layer, expert);
      random.add_vector(scope + "gate_proj.bias", width, 0.0F, 4.0F);
      random.add_vector(scope + "up_proj.bias", width, 0.0F, 4.0F);
      random.add_vector(scope + "down_proj.bias", hidden, 0.0F, 4.0F);
    }
  }

  // Experts of Gemma 4, which lie beside the MLP.
  void add_beside(const std::string& layer) const {
    for (const auto* norm :
         {"post_feedforward_layernorm_1",
          "pre_feedforward_layernorm_2",
          "post_feedforward_layernorm_2"}) {
      random.add_vector(fmt::format("{}{}.weight", layer, norm), hidden, 1.0F, 0.2F);
    }
    random.add_vector(layer + "router.scale", hidden, 1.0F, 0.2F);
    random.add_vector(layer + "router.per_expert_scale", experts, 1.0F, 0.2F);
    add_linear(layer + "router.proj", experts, hidden);
    add_single(layer, {"gate_proj", "up_proj", "down_proj"});
  }
};

}  // namespace saker::models
