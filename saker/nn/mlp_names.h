// SPDX-License-Identifier: Apache-2.0
#pragma once

// Names of an MLP's and a mixture's tensors in checkpoints.

#include <string_view>

namespace saker::nn {

struct MlpNames {
  std::string_view gate = "gate_proj";
  std::string_view up = "up_proj";
  std::string_view joined = "gate_up_proj";
  std::string_view down = "down_proj";
};

// Names inside the mixture's scope. Checkpoints store experts one by one, stacked as MLX does, or
// with gates and ups fused. The tensors that exist tell.
struct MoeNames {
  std::string_view router = "gate";
  std::string_view choice_bias = {};  // A tensor, see kernels::RouterTensors; empty: none.
  // Both in MLX's models; empty: the same.
  std::string_view mlx_router = {};
  std::string_view mlx_choice_bias = {};
  bool choice_bias_may_lack = false;    // A missing one is zeros.
  std::string_view expert_scales = {};  // A tensor, see kernels::RouterTensors; empty: none.
  // "experts.7.gate_proj.weight" [F, K]
  std::string_view experts = "experts";
  MlpNames single = {};
  // "switch_mlp.gate_proj.weight" [E, F, K]
  std::string_view stacks = "switch_mlp";
  MlpNames stacked = {};
  // Tensors [E, 2 F, K] (without gates [E, F, K]) and [E, outputs, F] in floats.
  std::string_view fused_inputs = "experts.gate_up_proj";
  std::string_view fused_down = "experts.down_proj";
  // Linear layers around the experts, see MoeOptions::latent.
  std::string_view to_latent = "fc1_latent_proj";
  std::string_view from_latent = "fc2_latent_proj";
  bool fused_transposed = false;  // They are [E, K, 2 F] and [E, F, outputs].
  bool fused_in_turns = false;    // Transposed ones: gates and ups take turns.
};

}  // namespace saker::nn
