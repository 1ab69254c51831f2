// SPDX-License-Identifier: Apache-2.0
#pragma once

// Linear layers of a mixture of experts: one weight per expert, multiplied with the rows that chose
// it. Only the weights of chosen experts are read. A row's bits are those of kernels::linear with
// its expert's weight.

#include "saker/kernels/mx.h"
#include "saker/kernels/ops/expert_choice.h"
#include "saker/kernels/storage/packed_weight.h"

#include <cstddef>
#include <memory>
#include <vector>

namespace saker::kernels {

// Weights [N, K] of E experts, in one format. Immutable; copies share the memory.
class ExpertWeights {
 public:
  // `experts` holds the parts of each expert's weight, as PackedWeight::pack takes them. Throws
  // kCorruptData when shapes and format disagree.
  static ExpertWeights pack(
      const std::vector<std::vector<WeightTensors>>& experts, const WeightFormat& format
  );

  int experts() const { return experts_; }  // E

  int rows() const { return rows_; }  // N

  int columns() const { return packed_->front().columns(); }  // K

  const WeightFormat& format() const { return packed_->front().format(); }

  // Bytes of one expert.
  std::size_t expert_nbytes() const;
  // All weights in float32, [E, N, K]: for references.
  mx::array dequantized() const;

  // On CPU one weight per expert; on a GPU one weight with all experts' rows. Not for callers.
  const std::shared_ptr<const std::vector<PackedWeight>>& packed() const { return packed_; }

 private:
  ExpertWeights(int experts, int rows, std::vector<PackedWeight> packed);

  int experts_;
  int rows_;
  std::shared_ptr<const std::vector<PackedWeight>> packed_;
};

// Each row times its expert's weight: x [P, K], one row per sorted pair -> [P, N] in the dtype that
// `linear` gives.
mx::array expert_linear(
    const mx::array& x, const ExpertPermutation& sorted, const ExpertWeights& weights
);

mx::array expert_linear_reference(
    const mx::array& x, const ExpertPermutation& sorted, const ExpertWeights& weights
);

}  // namespace saker::kernels
