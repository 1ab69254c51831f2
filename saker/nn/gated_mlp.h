// SPDX-License-Identifier: Apache-2.0
#pragma once

// down(activation(gate(x)) * up(x)): the feed-forward part of most decoders
// (https://arxiv.org/abs/2002.05202); without a gate, down(activation(up(x))). An activation may have
// learned factors. Immutable.

#include "saker/kernels/mx.h"
#include "saker/kernels/ops/activation.h"
#include "saker/kernels/ops/blocks.h"
#include "saker/nn/linear.h"
#include "saker/nn/mlp_names.h"
#include "saker/nn/norm.h"
#include "saker/nn/weights/weights.h"

#include <cstddef>
#include <optional>

namespace saker::nn {

struct MlpOptions {
  int hidden = 0;
  int intermediate = 0;
  kernels::Activation activation = kernels::Activation::kSilu;
  bool joined = false;  // Gate and up are one tensor.
  bool gated = true;
  float gate_scale = 1.0F;  // Scales the gate's outputs.
  MlpNames names = {};
};

class GatedMlp {
 public:
  GatedMlp(const Weights& weights, const MlpOptions& options);

  // x [N, hidden] -> [N, hidden]
  mx::array operator()(const mx::array& x, const RowContext& adapters) const;

  // As above, added to the target.
  kernels::ResidualNorm add_to(
      const ResidualTarget& target, const mx::array& x, const RowContext& adapters
  ) const;

  // Its products, without gates too; nullopt if adapters change them.
  std::optional<kernels::MlpBlock> products(const RowContext& adapters) const;

  std::size_t nbytes() const { return gate_up_.nbytes() + down_.nbytes(); }

 private:
  // The whole part as one operation; nullopt if adapters or a missing gate part it.
  std::optional<kernels::MlpBlock> block(const RowContext& adapters) const;
  // x [N, hidden] -> [N, intermediate]
  mx::array activated(const mx::array& x, const RowContext& adapters) const;

  kernels::Activation activation_;
  bool gated_;
  std::optional<mx::array> input_factors_;        // [2 F]: the gate's scale, and ones.
  std::optional<kernels::XieluFactors> factors_;  // That activation's.
  MergedLinear gate_up_;
  Linear down_;
};

}  // namespace saker::nn
