// SPDX-License-Identifier: Apache-2.0
#include "saker/nn/experts/mlp_beside_experts.h"

#include "saker/kernels/ops/norm.h"

#include <cmath>

namespace saker::nn {
namespace {

mx::array read_router_weight(const Weights& weights, const MlpBesideExpertsOptions& options) {
  const int hidden = options.mlp.hidden;
  const auto share = 1.0F / std::sqrt(static_cast<float>(hidden));
  auto weight = mx::multiply(weights.vector(options.router_scale, hidden), mx::array(share));
  weight.eval();
  return weight;
}

}  // namespace

MlpBesideExperts::MlpBesideExperts(const Weights& weights, const MlpBesideExpertsOptions& options)
    : mlp_(weights / options.mlp_scope, options.mlp),
      experts_(weights, options.moe),
      router_weight_(read_router_weight(weights, options)),
      eps_(options.norm.eps),
      mlp_norm_(weights / options.mlp_norm, options.mlp.hidden, options.norm),
      mlp_output_norm_(weights / options.mlp_output_norm, options.mlp.hidden, options.norm),
      experts_norm_(weights / options.experts_norm, options.mlp.hidden, options.norm),
      experts_output_norm_(
          weights / options.experts_output_norm, options.mlp.hidden, options.norm
      ) {}

mx::array MlpBesideExperts::operator()(const mx::array& x, const RowContext& adapters) const {
  const auto dense = mlp_output_norm_(mlp_(mlp_norm_(x, adapters), adapters), adapters);
  const auto router_rows = kernels::rms_norm(x, router_weight_, eps_);
  const auto routed = experts_(experts_norm_(x, adapters), router_rows, adapters);
  return mx::add(dense, experts_output_norm_(routed, adapters));
}

kernels::ResidualNorm MlpBesideExperts::add_to(
    const ResidualTarget& target, const mx::array& x, const RowContext& adapters
) const {
  return target.add((*this)(x, adapters), adapters);
}

}  // namespace saker::nn
