// SPDX-License-Identifier: Apache-2.0
#pragma once

// A mixture of experts: a router sends each token to a few gated MLPs and adds up their results by
// its routing weights (https://arxiv.org/abs/2101.03961). Immutable.
//
// Checkpoints store experts stacked, as MLX does (switch_mlp.gate_proj.weight [E, N, K]), or one by
// one (experts.7.gate_proj.weight [N, K]).

#include "saker/kernels/mx.h"
#include "saker/kernels/ops/activation.h"
#include "saker/kernels/ops/experts/expert_choice.h"
#include "saker/kernels/ops/experts/expert_linear.h"
#include "saker/kernels/ops/experts/experts_block.h"
#include "saker/nn/linear.h"
#include "saker/nn/weights/weights.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace saker::nn {

struct MoeOptions {
  int hidden = 0;
  int intermediate = 0;  // Per expert.
  int experts = 0;
  int chosen = 0;  // Experts per token.
  kernels::SoftmaxOrder softmax_order = kernels::SoftmaxOrder::kBeforeTopK;
  kernels::Activation activation = kernels::Activation::kSilu;
};

// Projections of every expert with one input. Each expert's parts keep their formats; those of one
// format are packed together. On a GPU a part has one format for all experts.
class ExpertLinear {
 public:
  struct Part {
    std::string_view name;  // "gate_proj"
    int outputs = 0;
  };

  // Throws kCorruptData naming the tensor unless each expert has [outputs, inputs] weights.
  ExpertLinear(const Weights& weights, const std::vector<Part>& parts, int inputs, int experts);

  // x [P, inputs], one row per sorted pair -> [P, sum of outputs], the parts side by side.
  // `adapters` do not change experts; their observer sees x.
  mx::array operator()(
      const mx::array& x, const kernels::ExpertPermutation& sorted, const RowContext& adapters
  ) const;

  // Bytes of one expert.
  std::size_t expert_nbytes() const { return weights_.expert_nbytes(); }

  const kernels::ExpertWeights& weights() const { return weights_; }

 private:
  kernels::ExpertWeights weights_;
  std::vector<std::string> modules_;  // The parts' paths, as MLX stacks them.
};

class Moe {
 public:
  Moe(const Weights& weights, const MoeOptions& options);

  // x [N, hidden] -> [N, hidden]
  mx::array operator()(const mx::array& x, const RowContext& adapters) const;

  // As above, added to the target.
  kernels::ResidualNorm add_to(
      const ResidualTarget& target, const mx::array& x, const RowContext& adapters
  ) const;

  // Bytes that one token reads.
  std::size_t nbytes() const;

 private:
  // The whole mixture as one operation on x; nullopt if the device, adapters or an observer part it.
  std::optional<kernels::ExpertsBlock> block(const mx::array& x, const RowContext& adapters) const;
  // As operator(), one operation after the other.
  mx::array parted(const mx::array& x, const RowContext& adapters) const;

  MoeOptions options_;
  Linear router_;
  ExpertLinear gate_up_;
  ExpertLinear down_;
};

}  // namespace saker::nn
