// SPDX-License-Identifier: Apache-2.0
#pragma once

// Sizes, rules and names of a mixture of experts.

#include "saker/kernels/ops/activation.h"
#include "saker/kernels/ops/experts/router_options.h"
#include "saker/nn/mlp_names.h"

#include <string_view>

namespace saker::nn {

// An MLP that all tokens take beside their experts.
struct SharedExpertOptions {
  int intermediate = 0;  // 0: there is none.
  std::string_view name = "shared_experts";
  bool beside = false;  // Lies beside the mixture's scope, not inside it.
  bool joined = false;  // See MlpOptions.
  MlpNames names = {};
  std::string_view gate = {};  // A linear layer [1, hidden], whose sigmoid scales the MLP's output.
  bool averaged = false;       // The mean of both outputs, not their sum.
};

struct MoeOptions {
  int hidden = 0;
  int intermediate = 0;  // Per expert.
  int experts = 0;
  kernels::RouterOptions routing = {};
  kernels::Activation activation = kernels::Activation::kSilu;
  bool gated = true;             // See MlpOptions.
  bool weighted_inputs = false;  // Weights of experts scale the rows that they read.
  MoeNames names = {};
  SharedExpertOptions shared = {};
  // Experts read rows of this size, which two linear layers make and take; 0: of `hidden`.
  int latent = 0;

  int expert_size() const { return latent > 0 ? latent : hidden; }
};

}  // namespace saker::nn
