// SPDX-License-Identifier: Apache-2.0
#pragma once

// An MLP and a mixture of experts on the same rows, each with norms of its own, whose outputs are
// added (Gemma 4 with experts). The router reads rows that are normed otherwise. Immutable.

#include "saker/kernels/mx.h"
#include "saker/nn/experts/moe.h"
#include "saker/nn/gated_mlp.h"
#include "saker/nn/norm.h"
#include "saker/nn/row_context.h"
#include "saker/nn/weights/weights.h"

#include <cstddef>
#include <string_view>

namespace saker::nn {

struct MlpBesideExpertsOptions {
  MlpOptions mlp;
  MoeOptions moe;
  NormOptions norm;
  std::string_view mlp_scope = "mlp";
  // A tensor [hidden]: together with 1 / sqrt(hidden) the weight of the router's norm.
  std::string_view router_scale = "router.scale";
  std::string_view mlp_norm = "pre_feedforward_layernorm";
  std::string_view mlp_output_norm = "post_feedforward_layernorm_1";
  std::string_view experts_norm = "pre_feedforward_layernorm_2";
  std::string_view experts_output_norm = "post_feedforward_layernorm_2";
};

class MlpBesideExperts {
 public:
  // `weights`: the layer's scope.
  MlpBesideExperts(const Weights& weights, const MlpBesideExpertsOptions& options);

  // Rows of the stream [N, hidden] -> [N, hidden]
  mx::array operator()(const mx::array& x, const RowContext& adapters) const;

  // As above, added to the target.
  kernels::ResidualNorm add_to(
      const ResidualTarget& target, const mx::array& x, const RowContext& adapters
  ) const;

  // Bytes that one token reads.
  std::size_t nbytes() const { return mlp_.nbytes() + experts_.nbytes(); }

 private:
  GatedMlp mlp_;
  Moe experts_;
  mx::array router_weight_;
  float eps_;
  Norm mlp_norm_;
  Norm mlp_output_norm_;
  Norm experts_norm_;
  Norm experts_output_norm_;
};

}  // namespace saker::nn
