// SPDX-License-Identifier: Apache-2.0
#pragma once

// Linear layers of a mixture of experts: one weight per expert, multiplied with the rows that chose
// it. Only the weights of chosen experts are read. A row's bits are those of kernels::linear with
// its expert's weight.

#include "saker/kernels/mx.h"
#include "saker/kernels/ops/experts/expert_choice.h"
#include "saker/kernels/storage/packed_weight.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

namespace saker::kernels {

struct LinearBodies;

// Tensors of an expert's weight in one format; their rows follow each other.
struct ExpertPart {
  std::vector<WeightTensors> tensors;
  WeightFormat format;
};

// Weights [N, K] of E experts, each of parts with formats of their own. Immutable; copies share the
// memory.
class ExpertWeights {
 public:
  // By expert, then by part. On a GPU: by part, all experts' rows in one weight.
  using Packed = std::vector<std::vector<PackedWeight>>;

  // `experts` holds the parts of each expert. Throws kCorruptData when shapes and formats disagree,
  // kUnsupported on a GPU unless all experts' parts have the same formats.
  static ExpertWeights pack(const std::vector<std::vector<ExpertPart>>& experts);
  // As above, all in one format.
  static ExpertWeights pack(
      const std::vector<std::vector<WeightTensors>>& experts, const WeightFormat& format
  );

  // These weights with biases [E, N], float32, dense and evaluated: an expert's is added to its
  // products.
  ExpertWeights with_biases(mx::array biases) const;

  const std::optional<mx::array>& biases() const { return biases_; }

  // An expert's bias [N]; null: none.
  const float* bias(int expert) const;

  int experts() const { return experts_; }  // E

  int rows() const { return rows_; }  // N

  int columns() const { return packed_->front().front().columns(); }  // K

  // True if weights stay in the checkpoint's file.
  bool stays_in_file() const;
  // Asks for an expert's pages all at once, if its weights stay in the checkpoint's file. CPU only.
  void ask_for_pages(int expert) const;

  // Bytes of one expert: the mean, if they differ.
  std::size_t expert_nbytes() const;
  // All weights in float32, [E, N, K]: for references.
  mx::array dequantized() const;

  // Not for callers. Throws kInternal unless `bodies` multiply all weights: CPU only.
  void check_orders(const LinearBodies& bodies) const;

  const std::shared_ptr<const Packed>& packed() const { return packed_; }

 private:
  ExpertWeights(int experts, int rows, Packed packed);

  int experts_;
  int rows_;
  std::shared_ptr<const Packed> packed_;
  std::optional<mx::array> biases_;
};

// Each row times its expert's weight, plus its bias if any: x [P, K], one row per sorted pair -> [P, N] in the dtype that
// `linear` gives.
mx::array expert_linear(
    const mx::array& x, const ExpertPermutation& sorted, const ExpertWeights& weights
);

mx::array expert_linear_reference(
    const mx::array& x, const ExpertPermutation& sorted, const ExpertWeights& weights
);

}  // namespace saker::kernels
