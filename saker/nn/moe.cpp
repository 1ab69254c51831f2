// SPDX-License-Identifier: Apache-2.0
#include "saker/nn/moe.h"

#include "saker/base/error.h"
#include "saker/kernels/gpu/backend.h"
#include "saker/kernels/layout/block_format.h"
#include "saker/nn/weights/pack_key.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace saker::nn {
namespace {

// One projection of an expert.
struct ExpertTensors {
  kernels::WeightTensors tensors;
  PackKey key;
};

using Projection = std::vector<ExpertTensors>;  // By expert.

bool is_plain(const kernels::WeightFormat& format) {
  return format.bits == 0 && !kernels::is_block(format.kind);
}

// Converts experts to float32 if their floats, or their scales, have several dtypes: a GPU
// multiplies all experts at once.
void unify(Projection& projection) {
  const PackKey& first = projection.front().key;
  if (std::ranges::all_of(projection, [&](const auto& e) { return e.key == first; })) {
    return;
  }
  const bool plain = is_plain(first.format);
  for (auto& [tensors, key] : projection) {
    require(
        key.format == first.format || (plain && is_plain(key.format)),
        ErrorCode::kUnsupported,
        "[{}] is quantized otherwise than expert 0, which a GPU can't run",
        tensors.name
    );
    if (plain) {
      tensors.weight = as_float32(tensors.weight);
    }
    for (auto* tensor : {&tensors.scales, &tensors.biases}) {
      if (*tensor) {
        *tensor = as_float32(**tensor);
      }
    }
  }
  const auto format =
      plain ? kernels::WeightFormat{.kind = kernels::WeightKind::kFloat32} : first.format;
  for (auto& [tensors, key] : projection) {
    key = pack_key(tensors, format);
  }
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
  auto stack = scope.stacked_tensors(experts);
  const auto format = scope.linear_format(inputs);
  Projection result;
  for (auto& tensors : stack) {
    const PackKey key = pack_key(tensors, format);
    result.push_back({std::move(tensors), key});
  }
  return result;
}

Projection read_single(const Weights& weights, std::string_view name, int inputs, int experts) {
  Projection result;
  for (int expert = 0; expert < experts; ++expert) {
    const auto scope = weights / "experts" / fmt::to_string(expert) / name;
    refuse_bias(scope);
    auto tensors = scope.linear_tensors();
    const PackKey key = pack_key(tensors, scope.linear_format(inputs));
    result.push_back({std::move(tensors), key});
  }
  return result;
}

Projection read_projection(
    const Weights& weights, const ExpertLinear::Part& part, int inputs, int experts
) {
  const auto stacked = weights / "switch_mlp" / part.name;
  auto result = stacked.has("weight") ? read_stacked(stacked, inputs, experts)
                                      : read_single(weights, part.name, inputs, experts);
  for (const auto& [tensors, key] : result) {
    check_linear_shape(tensors, key.format, inputs, part.outputs);
  }
  if (!kernels::on_cpu()) {
    unify(result);
  }
  return result;
}

// An expert's weights, those of one format joined.
std::vector<kernels::ExpertPart> parts_of(
    std::vector<Projection>& projections, std::size_t expert
) {
  std::vector<kernels::ExpertPart> parts;
  std::optional<PackKey> last;
  for (auto& projection : projections) {
    auto& [tensors, key] = projection[expert];
    if (last != key) {
      parts.push_back({{}, key.format});
      last = key;
    }
    parts.back().tensors.push_back(std::move(tensors));
  }
  return parts;
}

kernels::ExpertWeights pack_experts(
    const Weights& weights, const std::vector<ExpertLinear::Part>& parts, int inputs, int experts
) {
  std::vector<Projection> projections;
  projections.reserve(parts.size());
  for (const auto& part : parts) {
    projections.push_back(read_projection(weights, part, inputs, experts));
  }
  std::vector<std::vector<kernels::ExpertPart>> by_expert;
  by_expert.reserve(projections.front().size());
  for (std::size_t expert = 0; expert < projections.front().size(); ++expert) {
    by_expert.push_back(parts_of(projections, expert));
  }
  return kernels::ExpertWeights::pack(by_expert);
}

}  // namespace

ExpertLinear::ExpertLinear(
    const Weights& weights, const std::vector<Part>& parts, int inputs, int experts
)
    : weights_(pack_experts(weights, parts, inputs, experts)) {
  modules_.reserve(parts.size());
  for (const auto& part : parts) {
    modules_.push_back((weights / "switch_mlp" / part.name).path(""));
  }
}

mx::array ExpertLinear::operator()(
    const mx::array& x, const kernels::ExpertPermutation& sorted, const RowContext& adapters
) const {
  adapters.observe(x, sorted, modules_, weights_.experts());
  return kernels::expert_linear(x, sorted, weights_);
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
  const auto whole = block(x, adapters);
  return whole ? kernels::experts_block(x, *whole) : parted(x, adapters);
}

kernels::ResidualNorm Moe::add_to(
    const ResidualTarget& target, const mx::array& x, const RowContext& adapters
) const {
  const auto whole = block(x, adapters);
  if (!whole) {
    return target.add(parted(x, adapters), adapters);
  }
  const auto next = target.next();
  return target.norm.changed(kernels::experts_block(x, *whole, next), adapters);
}

std::optional<kernels::ExpertsBlock> Moe::block(const mx::array& x, const RowContext& adapters)
    const {
  const auto router = router_.projection(adapters);
  if (!router) {
    return std::nullopt;
  }
  kernels::ExpertsBlock whole{
      *router,
      options_.chosen,
      options_.softmax_order,
      gate_up_.weights(),
      options_.activation,
      down_.weights(),
  };
  return kernels::runs_experts_block(x, whole) ? std::optional(std::move(whole)) : std::nullopt;
}

mx::array Moe::parted(const mx::array& x, const RowContext& adapters) const {
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
