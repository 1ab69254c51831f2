// SPDX-License-Identifier: Apache-2.0
#include "saker/nn/moe.h"

#include "saker/base/error.h"
#include "saker/nn/weights/pack_key.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace saker::nn {
namespace {

using ExpertTensors = std::vector<std::vector<kernels::WeightTensors>>;

// One projection of all experts.
struct Projection {
  PackKey key;
  std::vector<kernels::WeightTensors> experts;
};

bool is_plain(const kernels::WeightFormat& format) {
  return format.bits == 0;
}

// Converts experts to float32 if their floats, or their scales, have several dtypes.
Projection widened(Projection projection) {
  const bool plain = is_plain(projection.key.format);
  for (auto& expert : projection.experts) {
    if (plain) {
      expert.weight = as_float32(expert.weight);
    }
    for (auto* tensor : {&expert.scales, &expert.biases}) {
      if (*tensor) {
        *tensor = as_float32(**tensor);
      }
    }
  }
  const auto format =
      plain ? kernels::WeightFormat{.kind = kernels::WeightKind::kFloat32} : projection.key.format;
  projection.key = pack_key(projection.experts.front(), format);
  return projection;
}

void refuse_bias(const Weights& scope) {
  require(
      !scope.has("bias"),
      ErrorCode::kUnsupported,
      "[{}] experts with a bias can't be run",
      scope.path("bias")
  );
}

Projection read_stacked(const Weights& scope, int inputs, int experts) {
  refuse_bias(scope);
  auto tensors = scope.stacked_tensors(experts);
  const auto format = scope.linear_format(inputs);
  return {pack_key(tensors.front(), format), std::move(tensors)};
}

Projection read_single(const Weights& weights, std::string_view name, int inputs, int experts) {
  Projection result;
  bool same = true;
  for (int expert = 0; expert < experts; ++expert) {
    const auto scope = weights / "experts" / fmt::to_string(expert) / name;
    refuse_bias(scope);
    result.experts.push_back(scope.linear_tensors());
    const auto format = scope.linear_format(inputs);
    const PackKey key = pack_key(result.experts.back(), format);
    if (expert == 0) {
      result.key = key;
    }
    const auto& first = result.key.format;
    require(
        format == first || (is_plain(format) && is_plain(first)),
        ErrorCode::kUnsupported,
        "[{}] is quantized otherwise than expert 0",
        scope.path("weight")
    );
    same = same && key == result.key;
  }
  if (!same) {
    return widened(std::move(result));
  }
  return result;
}

Projection read_projection(
    const Weights& weights, const ExpertLinear::Part& part, int inputs, int experts
) {
  const auto stacked = weights / "switch_mlp" / part.name;
  auto result = stacked.has("weight") ? read_stacked(stacked, inputs, experts)
                                      : read_single(weights, part.name, inputs, experts);
  for (const auto& tensors : result.experts) {
    check_linear_shape(tensors, result.key.format, inputs, part.outputs);
  }
  return result;
}

// Transposes: from the experts of each part to the parts of each expert.
ExpertTensors by_expert(std::vector<Projection> projections) {
  ExpertTensors result(projections.front().experts.size());
  for (auto& projection : projections) {
    for (std::size_t expert = 0; expert < result.size(); ++expert) {
      result[expert].push_back(std::move(projection.experts[expert]));
    }
  }
  return result;
}

}  // namespace

ExpertLinear::ExpertLinear(
    const Weights& weights, const std::vector<Part>& parts, int inputs, int experts
) {
  std::vector<Projection> projections;
  projections.reserve(parts.size());
  for (const auto& part : parts) {
    modules_.push_back((weights / "switch_mlp" / part.name).path(""));
    projections.push_back(read_projection(weights, part, inputs, experts));
  }
  const auto key = projections.front().key;
  if (std::ranges::all_of(projections, [&](const auto& p) { return p.key == key; })) {
    const auto packed = kernels::ExpertWeights::pack(by_expert(std::move(projections)), key.format);
    products_.push_back(packed);
    return;
  }
  for (auto& projection : projections) {
    const auto own = projection.key.format;
    products_.push_back(kernels::ExpertWeights::pack(by_expert({std::move(projection)}), own));
  }
}

mx::array ExpertLinear::operator()(
    const mx::array& x, const kernels::ExpertPermutation& sorted, const RowContext& adapters
) const {
  adapters.observe(x, sorted, modules_, products_.front().experts());
  std::vector<mx::array> results;
  results.reserve(products_.size());
  for (const auto& product : products_) {
    results.push_back(kernels::expert_linear(x, sorted, product));
  }
  return results.size() == 1 ? results.front() : mx::concatenate(results, 1);
}

std::size_t ExpertLinear::expert_nbytes() const {
  std::size_t total = 0;
  for (const auto& product : products_) {
    total += product.expert_nbytes();
  }
  return total;
}

Moe::Moe(const Weights& weights, const MoeOptions& options)
    : options_(options),
      router_(Linear::in_float32(weights / "gate", options.hidden, options.experts)),
      gate_up_(
          weights,
          {{"gate_proj", options.intermediate}, {"up_proj", options.intermediate}},
          options.hidden,
          options.experts
      ),
      down_(weights, {{"down_proj", options.hidden}}, options.intermediate, options.experts) {}

mx::array Moe::operator()(const mx::array& x, const RowContext& adapters) const {
  const auto choice =
      kernels::choose_experts(router_(x, adapters), options_.chosen, options_.softmax_order);
  const auto sorted = kernels::sort_by_expert(choice.ids, options_.experts);
  const auto gate_up = gate_up_(kernels::gather_rows(x, sorted), sorted, adapters);
  const auto fed = down_(kernels::gated_activation(gate_up, options_.activation), sorted, adapters);
  return kernels::combine_experts(fed, sorted, choice.weights);
}

std::size_t Moe::nbytes() const {
  return router_.nbytes() + static_cast<std::size_t>(options_.chosen) *
                                (gate_up_.expert_nbytes() + down_.expert_nbytes());
}

}  // namespace saker::nn
