// SPDX-License-Identifier: Apache-2.0
#pragma once

// The token table. Its rows start the residual stream, in float32.

#include "saker/kernels/mx.h"
#include "saker/kernels/storage/packed_weight.h"
#include "saker/nn/row_context.h"
#include "saker/nn/weights/weights.h"

#include <string>

namespace saker::nn {

class Embedding {
 public:
  // Throws kCorruptData unless the scope holds a [vocab_size, hidden] weight.
  Embedding(const Weights& weights, int vocab_size, int hidden);

  // ids int32 [N] -> [N, hidden], multiplied by `scale`.
  mx::array operator()(const mx::array& ids, float scale, const RowContext& adapters) const;

  // [vocab_size, hidden], for a head with the same weight.
  const kernels::PackedWeight& packed() const { return weight_; }

 private:
  kernels::PackedWeight weight_;
  std::string path_;
};

}  // namespace saker::nn
