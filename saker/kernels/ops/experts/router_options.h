// SPDX-License-Identifier: Apache-2.0
#pragma once

// How a router's outputs become a choice of experts and their weights.

#include "saker/kernels/mx.h"

#include <cstdint>
#include <optional>

namespace saker::kernels {

// A router's scores, which become weights.
enum class RouterScore : std::uint8_t {
  kSoftmax,          // Softmax over all experts.
  kSoftmaxOfChosen,  // Softmax over the chosen ones: their weights sum to 1.
  kSigmoid,
  kSqrtSoftplus,  // sqrt(log(1 + exp(x)))
};

// By what a group of experts is compared with the others.
enum class GroupScore : std::uint8_t {
  kLargest,
  kLargestTwo,  // Their sum.
};

struct RouterOptions {
  int chosen = 0;  // R
  RouterScore score = RouterScore::kSoftmax;
  float softcap = 0.0F;  // Caps outputs, see kernels::softcap; 0: none.
  // Experts in groups of one size: only those of the best `kept_groups` are compared.
  int groups = 1;
  int kept_groups = 1;
  GroupScore group_score = GroupScore::kLargest;
  // Weights are divided by their sum plus `epsilon`.
  bool normalized = false;
  float epsilon = 0.0F;
  float scale = 1.0F;  // All weights are multiplied by it.
};

// Float32, dense and evaluated.
struct RouterTensors {
  std::optional<mx::array> bias;    // [E]: is added to scores for the choice alone.
  std::optional<mx::array> scales;  // [E]: each expert's factor of its weights.
};

// True if the choice compares outputs; else it compares scores. Both have the same order, except
// where rounding makes scores equal.
bool compares_logits(const RouterOptions& options, const RouterTensors& tensors);

// Throws kInternal unless the rules and tensors fit `experts`.
void check_router(const RouterOptions& options, const RouterTensors& tensors, int experts);

}  // namespace saker::kernels
