// SPDX-License-Identifier: Apache-2.0
#pragma once

// A mixture of experts as one operation on CPU: router, choice, gated MLPs, weighted sum, and
// optionally the addition to the residual stream and the next norm (see ops/blocks.h).
//
// Rows are prepared for gates and ups at once, and where one row goes to an expert, once for all its
// experts. An expert's down projection begins when its own gates and ups are done
// (docs/adr/0079-a-mixture-is-one-operation.md).

#include "saker/kernels/mx.h"
#include "saker/kernels/ops/activation.h"
#include "saker/kernels/ops/blocks.h"
#include "saker/kernels/ops/experts/expert_choice.h"
#include "saker/kernels/ops/experts/expert_linear.h"
#include "saker/kernels/ops/linear.h"

#include <optional>

namespace saker::kernels {

// An MLP that all rows take beside their experts, with the experts' activation.
struct SharedExpert {
  Projection gate_up;  // Gates, then ups: [2 F, K]; [F, K] without gates.
  Projection down;     // [outputs, F]
  // [1, K]: the logistic of its output scales a row's result; none: 1.
  std::optional<Projection> share = std::nullopt;
  bool averaged = false;  // The mean of both results, not their sum.
};

struct ExpertsBlock {
  Projection router;  // [E, K]
  RouterOptions routing;
  RouterTensors router_tensors;
  ExpertWeights gate_up;  // Gates, then ups: [2 F, K]; [F, K] of experts without gates.
  Activation activation;
  ExpertWeights down;                                   // [outputs, F]
  std::optional<mx::array> router_rows = std::nullopt;  // [N, K] of the router; none: x.
  std::optional<SharedExpert> shared = std::nullopt;
};

// True if this device runs the block on such rows.
bool runs_experts_block(const mx::array& x, const ExpertsBlock& block);

// choose_experts(linear(x or router_rows)), sort_by_expert, then combine_experts(expert_linear(gated_activation(
// expert_linear(gather_rows(x))))): x [N, K] -> [N, outputs]. Without gates: activation() instead of
// gated_activation(). With a shared expert: add(that, multiply(mlp_block(x), activation(linear(x))));
// half of it for the mean. REQUIRES: runs_experts_block().
mx::array experts_block(const mx::array& x, const ExpertsBlock& block);
// add_and_norm() of that.
ResidualNorm experts_block(const mx::array& x, const ExpertsBlock& block, const NextNorm& next);

}  // namespace saker::kernels
