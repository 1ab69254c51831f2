// SPDX-License-Identifier: Apache-2.0
#include "saker/nn/gated_mlp.h"

#include <vector>

namespace saker::nn {
namespace {

std::vector<MergedLinear::Part> inputs(const Weights& weights, const MlpOptions& options) {
  const MlpNames& names = options.names;
  if (!options.gated) {
    return {{weights / names.up, options.intermediate}};
  }
  if (options.joined) {
    return {{weights / names.joined, 2 * options.intermediate}};
  }
  return {{weights / names.gate, options.intermediate}, {weights / names.up, options.intermediate}};
}

}  // namespace

GatedMlp::GatedMlp(const Weights& weights, const MlpOptions& options)
    : activation_(options.activation),
      gated_(options.gated),
      gate_up_(inputs(weights, options), options.hidden),
      down_(weights / options.names.down, options.intermediate, options.hidden) {}

mx::array GatedMlp::operator()(const mx::array& x, const RowContext& adapters) const {
  if (const auto whole = block(adapters)) {
    return kernels::mlp_block(x, *whole);
  }
  return down_(activated(x, adapters), adapters);
}

kernels::ResidualNorm GatedMlp::add_to(
    const ResidualTarget& target, const mx::array& x, const RowContext& adapters
) const {
  if (const auto whole = block(adapters)) {
    const auto next = target.next();
    return target.norm.changed(kernels::mlp_block(x, *whole, next), adapters);
  }
  return down_.add_to(target, activated(x, adapters), adapters);
}

std::optional<kernels::MlpBlock> GatedMlp::block(const RowContext& adapters) const {
  return gated_ ? products(adapters) : std::nullopt;
}

std::optional<kernels::MlpBlock> GatedMlp::products(const RowContext& adapters) const {
  const auto gate_up = gate_up_.projection(adapters);
  const auto down = down_.projection(adapters);
  if (!gate_up || !down) {
    return std::nullopt;
  }
  return kernels::MlpBlock{*gate_up, activation_, *down};
}

mx::array GatedMlp::activated(const mx::array& x, const RowContext& adapters) const {
  const auto inner = gate_up_(x, adapters);
  return gated_ ? kernels::gated_activation(inner, activation_)
                : kernels::activation(inner, activation_);
}

}  // namespace saker::nn
