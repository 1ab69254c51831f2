// SPDX-License-Identifier: Apache-2.0
#include "saker/nn/embedding.h"

#include "saker/kernels/linear.h"

namespace saker::nn {

Embedding::Embedding(const Weights& weights, int vocab_size, int hidden)
    : weight_(weights, hidden, vocab_size) {}

mx::array Embedding::operator()(const mx::array& ids, float scale) const {
  auto rows = kernels::embed(ids, weight_.packed());
  return scale == 1.0F ? rows : mx::multiply(rows, mx::array(scale, rows.dtype()));
}

}  // namespace saker::nn
