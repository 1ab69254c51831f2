// SPDX-License-Identifier: Apache-2.0
#include "saker/nn/experts/moe.h"

#include <optional>
#include <utility>

namespace saker::nn {
namespace {

// Options with the names of the router that this checkpoint has.
MoeOptions with_names_of(const Weights& weights, MoeOptions options) {
  MoeNames& names = options.names;
  if (!names.mlx_router.empty() && (weights / names.mlx_router).has("weight")) {
    names.router = names.mlx_router;
    names.choice_bias = names.mlx_choice_bias;
  }
  return options;
}

ExpertLinear read_inputs(const Weights& weights, const MoeOptions& options) {
  const MoeNames& names = options.names;
  std::vector<ExpertLinear::Part> parts;
  if (options.gated) {
    parts.push_back({names.stacked.gate, names.single.gate, options.intermediate});
  }
  parts.push_back({names.stacked.up, names.single.up, options.intermediate});
  return {weights, names, names.fused_inputs, parts, {options.expert_size(), options.experts}};
}

ExpertLinear read_down(const Weights& weights, const MoeOptions& options) {
  const MoeNames& names = options.names;
  return {
      weights,
      names,
      names.fused_down,
      {{names.stacked.down, names.single.down, options.expert_size()}},
      {options.intermediate, options.experts},
  };
}

// A router's tensor [E], which some models store as [1, E].
std::optional<mx::array> read_router_tensor(
    const Weights& weights, std::string_view name, int experts
) {
  if (name.empty()) {
    return std::nullopt;
  }
  const auto found = weights.find(name);
  if (!found || found->shape.size() < 2) {
    return weights.vector(name, experts);
  }
  auto flat = mx::flatten(weights.array(name, {1, experts}));
  flat.eval();
  return flat;
}

std::optional<mx::array> read_choice_bias(const Weights& weights, const MoeOptions& options) {
  const MoeNames& names = options.names;
  if (names.choice_bias_may_lack && !weights.has(names.choice_bias)) {
    return std::nullopt;
  }
  return read_router_tensor(weights, names.choice_bias, options.experts);
}

std::optional<GatedMlp> read_shared(const Weights& weights, const MoeOptions& options) {
  const SharedExpertOptions& shared = options.shared;
  if (shared.intermediate == 0) {
    return std::nullopt;
  }
  const MlpOptions mlp{
      .hidden = options.hidden,
      .intermediate = shared.intermediate,
      .activation = options.activation,
      .joined = shared.joined,
      .gated = options.gated,
      .names = shared.names,
  };
  return GatedMlp(weights / shared.name, mlp);
}

std::optional<Linear> read_shared_gate(const Weights& weights, const MoeOptions& options) {
  const SharedExpertOptions& shared = options.shared;
  if (shared.intermediate == 0 || shared.gate.empty()) {
    return std::nullopt;
  }
  return Linear(weights / shared.gate, options.hidden, 1);
}

}  // namespace

Moe::Moe(const Weights& weights, const MoeOptions& options) : Moe(weights, options, weights) {}

Moe::Moe(const Weights& weights, const MoeOptions& published, const Weights& beside)
    : options_(with_names_of(weights, published)),
      router_(Linear::in_float32(weights / options_.names.router, options_.hidden, options_.experts)
      ),
      router_tensors_{
          read_choice_bias(weights, options_),
          read_router_tensor(weights, options_.names.expert_scales, options_.experts),
      },
      inputs_(read_inputs(weights, options_)),
      down_(read_down(weights, options_)),
      shared_(read_shared(options_.shared.beside ? beside : weights, options_)),
      shared_gate_(read_shared_gate(weights, options_)) {
  if (options_.latent > 0) {
    to_latent_.emplace(weights / options_.names.to_latent, options_.hidden, options_.latent);
    from_latent_.emplace(weights / options_.names.from_latent, options_.latent, options_.hidden);
  }
}

mx::array Moe::operator()(const mx::array& x, const RowContext& adapters) const {
  const auto whole = block(x, adapters);
  const auto sum = whole ? kernels::experts_block(x, *whole) : parted(x, x, adapters);
  return has_shared(whole) ? sum : with_shared(sum, x, adapters);
}

mx::array Moe::operator()(
    const mx::array& x, const mx::array& router_rows, const RowContext& adapters
) const {
  auto whole = block(x, adapters);
  if (whole) {
    whole->router_rows = router_rows;
  }
  if (!whole || !kernels::runs_experts_block(x, *whole)) {
    const auto routed = parted(x, router_rows, adapters);
    return shared_ ? with_shared(routed, x, adapters) : routed;
  }
  const auto sum = kernels::experts_block(x, *whole);
  return has_shared(whole) ? sum : with_shared(sum, x, adapters);
}

kernels::ResidualNorm Moe::add_to(
    const ResidualTarget& target, const mx::array& x, const RowContext& adapters
) const {
  const auto whole = block(x, adapters);
  if (!whole || !has_shared(whole)) {
    return target.add((*this)(x, adapters), adapters);
  }
  const auto next = target.next();
  return target.norm.changed(kernels::experts_block(x, *whole, next), adapters);
}

std::optional<kernels::ExpertsBlock> Moe::block(const mx::array& x, const RowContext& adapters)
    const {
  const auto router = router_.projection(adapters);
  if (!router || to_latent_ || options_.weighted_inputs || inputs_.is_changed(adapters) ||
      down_.is_changed(adapters)) {
    return std::nullopt;
  }
  kernels::ExpertsBlock whole{
      *router,
      options_.routing,
      router_tensors_,
      inputs_.weights(),
      options_.activation,
      down_.weights(),
  };
  if (const auto shared = shared_expert(adapters)) {
    whole.shared.emplace(*shared);
  }
  return kernels::runs_experts_block(x, whole) ? std::optional(std::move(whole)) : std::nullopt;
}

bool Moe::has_shared(const std::optional<kernels::ExpertsBlock>& whole) const {
  return !shared_ || (whole && whole->shared);
}

std::optional<kernels::SharedExpert> Moe::shared_expert(const RowContext& adapters) const {
  const auto mlp = shared_ ? shared_->products(adapters) : std::nullopt;
  const auto share = shared_gate_ ? shared_gate_->projection(adapters) : std::nullopt;
  if (!mlp || share.has_value() != shared_gate_.has_value()) {
    return std::nullopt;
  }
  return kernels::SharedExpert{mlp->gate_up, mlp->down, share, options_.shared.averaged};
}

mx::array Moe::parted(const mx::array& x, const mx::array& router_rows, const RowContext& adapters)
    const {
  const auto choice =
      kernels::choose_experts(router_(router_rows, adapters), options_.routing, router_tensors_);
  const auto sorted = kernels::sort_by_expert(choice.ids, options_.experts);
  const auto rows = to_latent_ ? (*to_latent_)(x, adapters) : x;
  auto gathered = kernels::gather_rows(rows, sorted);
  auto weights = choice.weights;
  if (options_.weighted_inputs) {
    const auto shares = mx::expand_dims(mx::take(mx::flatten(weights), sorted.pairs), 1);
    gathered = mx::multiply(gathered, mx::astype(shares, gathered.dtype()));
    weights = mx::ones_like(weights);
  }
  const auto inner = inputs_(gathered, sorted, adapters);
  const auto activated = options_.gated ? kernels::gated_activation(inner, options_.activation)
                                        : kernels::activation(inner, options_.activation);
  const auto sum = kernels::combine_experts(down_(activated, sorted, adapters), sorted, weights);
  return from_latent_ ? (*from_latent_)(sum, adapters) : sum;
}

mx::array Moe::with_shared(const mx::array& routed, const mx::array& x, const RowContext& adapters)
    const {
  auto shared = (*shared_)(x, adapters);
  if (shared_gate_) {
    const auto share =
        kernels::activation((*shared_gate_)(x, adapters), kernels::Activation::kLogistic);
    shared = mx::multiply(shared, share);
  }
  const auto sum = mx::add(routed, shared);
  return options_.shared.averaged ? mx::multiply(sum, mx::array(0.5F, sum.dtype())) : sum;
}

std::size_t Moe::nbytes() const {
  const auto chosen = static_cast<std::size_t>(options_.routing.chosen);
  return router_.nbytes() + chosen * (inputs_.expert_nbytes() + down_.expert_nbytes()) +
         (shared_ ? shared_->nbytes() : 0) + (shared_gate_ ? shared_gate_->nbytes() : 0) +
         (to_latent_ ? to_latent_->nbytes() + from_latent_->nbytes() : 0);
}

}  // namespace saker::nn
