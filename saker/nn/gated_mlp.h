// SPDX-License-Identifier: Apache-2.0
#pragma once

// down(activation(gate(x)) * up(x)): the feed-forward part of most decoders
// (https://arxiv.org/abs/2002.05202). Immutable.

#include "saker/kernels/mx.h"
#include "saker/kernels/ops/activation.h"
#include "saker/nn/linear.h"
#include "saker/nn/weights.h"

#include <cstddef>

namespace saker::nn {

struct MlpOptions {
  int hidden = 0;
  int intermediate = 0;
  kernels::Activation activation = kernels::Activation::kSilu;
};

class GatedMlp {
 public:
  GatedMlp(const Weights& weights, const MlpOptions& options);

  // x [N, hidden] -> [N, hidden]
  mx::array operator()(const mx::array& x, const RowContext& adapters) const;

  std::size_t nbytes() const { return gate_up_.nbytes() + down_.nbytes(); }

 private:
  kernels::Activation activation_;
  MergedLinear gate_up_;
  Linear down_;
};

}  // namespace saker::nn
