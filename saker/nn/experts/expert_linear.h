// SPDX-License-Identifier: Apache-2.0
#pragma once

// Linear layers of experts over named weights, in each layout of checkpoints (see MoeNames).
// Immutable.

#include "saker/kernels/mx.h"
#include "saker/kernels/ops/experts/expert_choice.h"
#include "saker/kernels/ops/experts/expert_linear.h"
#include "saker/nn/experts/moe_options.h"
#include "saker/nn/row_context.h"
#include "saker/nn/weights/weights.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace saker::nn {

// Projections of every expert with one input. Each expert's parts keep their formats; those of one
// format are packed together. On a GPU a part has one format for all experts.
class ExpertLinear {
 public:
  struct Part {
    std::string_view stacked;  // "gate_proj"
    std::string_view single;
    int outputs = 0;
  };

  struct Shape {
    int inputs = 0;
    int experts = 0;
  };

  // `fused`: the tensor of all parts. Throws kCorruptData naming the tensor unless each expert has
  // [outputs, inputs] weights.
  ExpertLinear(
      const Weights& weights,
      const MoeNames& names,
      std::string_view fused,
      const std::vector<Part>& parts,
      Shape shape
  );

  // x [P, inputs], one row per sorted pair -> [P, sum of outputs], the parts side by side.
  mx::array operator()(
      const mx::array& x, const kernels::ExpertPermutation& sorted, const RowContext& adapters
  ) const;

  // True if a token's adapter changes experts.
  bool is_changed(const RowContext& adapters) const { return adapters.changes_experts(columns_); }

  // Bytes of one expert.
  std::size_t expert_nbytes() const { return weights_.expert_nbytes(); }

  const kernels::ExpertWeights& weights() const { return weights_; }

 private:
  struct ReadExperts;

  static ReadExperts read_experts(
      const Weights& weights,
      const MoeNames& names,
      std::string_view fused,
      const std::vector<Part>& parts,
      Shape shape
  );

  ExpertLinear(
      const Weights& weights,
      const MoeNames& names,
      const std::vector<Part>& parts,
      Shape shape,
      ReadExperts read
  );

  kernels::ExpertWeights weights_;
  std::vector<std::string> modules_;  // The parts' paths, as MLX stacks them.
  std::vector<ModuleColumns> columns_;
};

}  // namespace saker::nn
