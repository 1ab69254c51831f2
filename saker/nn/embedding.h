// SPDX-License-Identifier: Apache-2.0
#pragma once

// The token table, and the head that shares it. Its rows start the residual stream: float32 on CPU,
// the checkpoint's dtype on a GPU; every later layer keeps the dtype it is given.

#include "saker/kernels/mx.h"
#include "saker/kernels/packed_weight.h"
#include "saker/nn/linear.h"
#include "saker/nn/weights.h"

#include <cstddef>

namespace saker::nn {

class Embedding {
 public:
  // Throws kCorruptData unless the scope holds a [vocab_size, hidden] weight.
  Embedding(const Weights& weights, int vocab_size, int hidden);

  // ids int32 [N] -> [N, hidden], times `scale`.
  mx::array operator()(const mx::array& ids, float scale) const;

  // x [N, hidden] -> logits [N, vocab_size]: the tied head.
  mx::array as_linear(const mx::array& x) const { return weight_(x); }

  std::size_t nbytes() const { return weight_.nbytes(); }

  const kernels::WeightFormat& format() const { return weight_.packed().format(); }

 private:
  Linear weight_;
};

}  // namespace saker::nn
