// SPDX-License-Identifier: Apache-2.0
#include "saker/nn/embedding.h"

#include "saker/kernels/ops/linear.h"
#include "saker/nn/linear.h"

namespace saker::nn {

Embedding::Embedding(const Weights& weights, int vocab_size, int hidden)
    : weight_(pack_linear(weights, hidden, vocab_size)), path_(weights.path("")) {
  weights.add_module({
      .path = path_,
      .embedding = true,
      .inputs = hidden,
      .outputs = vocab_size,
      .weight = weight_,
      .bias = {},
      .norm = {},
  });
}

mx::array Embedding::operator()(const mx::array& ids, float scale, const RowContext& adapters)
    const {
  const auto rows = adapters.change_embedding(kernels::embed(ids, weight_), ids, path_);
  return scale == 1.0F ? rows : mx::multiply(rows, mx::array(scale, rows.dtype()));
}

}  // namespace saker::nn
