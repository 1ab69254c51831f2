// SPDX-License-Identifier: Apache-2.0
#include "saker/nn/gated_mlp.h"

#include <string_view>
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

// The activation's numbers, each stored as it is or as one of [1].
kernels::XieluFactors read_xielu(const Weights& weights) {
  const auto number = [&](std::string_view name) {
    const auto found = weights.find(name);
    const bool is_vector = found && found->shape.size() == 1;
    const auto value = weights.array(name, is_vector ? std::vector<int>{1} : std::vector<int>());
    return mx::astype(value, mx::float32).item<float>();
  };
  return kernels::xielu_factors(
      number("alpha_p"), number("alpha_n"), number("beta"), number("eps")
  );
}

}  // namespace

GatedMlp::GatedMlp(const Weights& weights, const MlpOptions& options)
    : activation_(options.activation),
      gated_(options.gated),
      gate_up_(inputs(weights, options), options.hidden),
      down_(weights / options.names.down, options.intermediate, options.hidden) {
  if (options.activation == kernels::Activation::kXielu) {
    factors_ = read_xielu(weights / "act_fn");
  }
  if (options.gate_scale != 1.0F) {
    const mx::Shape half = {options.intermediate};
    input_factors_ =
        mx::concatenate({mx::full(half, options.gate_scale), mx::ones(half, mx::float32)});
    mx::eval(*input_factors_);
  }
}

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
  if (factors_ || input_factors_) {
    return std::nullopt;
  }
  const auto gate_up = gate_up_.projection(adapters);
  const auto down = down_.projection(adapters);
  if (!gate_up || !down) {
    return std::nullopt;
  }
  return kernels::MlpBlock{*gate_up, activation_, *down};
}

mx::array GatedMlp::activated(const mx::array& x, const RowContext& adapters) const {
  auto inner = gate_up_(x, adapters);
  if (factors_) {
    return kernels::xielu(inner, *factors_);
  }
  if (input_factors_) {
    inner = mx::multiply(inner, mx::astype(*input_factors_, inner.dtype()));
  }
  return gated_ ? kernels::gated_activation(inner, activation_)
                : kernels::activation(inner, activation_);
}

}  // namespace saker::nn
