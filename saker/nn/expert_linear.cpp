// SPDX-License-Identifier: Apache-2.0
#include "saker/nn/expert_linear.h"

#include "saker/base/error.h"
#include "saker/kernels/gpu/backend.h"
#include "saker/kernels/layout/block_format.h"
#include "saker/nn/linear.h"
#include "saker/nn/weights/pack_key.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
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

Projection read_single(const Weights& scopes, std::string_view name, int inputs, int experts) {
  Projection result;
  for (int expert = 0; expert < experts; ++expert) {
    const auto scope = scopes / fmt::to_string(expert) / name;
    refuse_bias(scope);
    auto tensors = scope.linear_tensors();
    const PackKey key = pack_key(tensors, scope.linear_format(inputs));
    result.push_back({std::move(tensors), key});
  }
  return result;
}

// Rows become columns.
Tensor transposed(const Tensor& tensor) {
  const auto rows = static_cast<std::size_t>(tensor.shape[0]);
  const auto columns = static_cast<std::size_t>(tensor.shape[1]);
  const std::size_t size = dtype_size(tensor.dtype);
  const auto bytes = std::make_shared<std::vector<std::byte>>(tensor.nbytes());
  const std::byte* from = tensor.data.get();
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t column = 0; column < columns; ++column, from += size) {
      std::copy_n(from, size, bytes->data() + (column * rows + row) * size);
    }
  }
  Tensor result = tensor;
  std::swap(result.shape[0], result.shape[1]);
  result.data = std::shared_ptr<const std::byte>(bytes, bytes->data());
  return result;
}

// All parts of an expert in one tensor.
Projection read_fused(
    const Weights& weights, std::string_view name, bool is_transposed, int experts
) {
  const auto format = weights.float_format(name);
  Projection result;
  for (Tensor& layer : weights.stack(name, experts)) {
    require(
        layer.shape.size() == 2,
        ErrorCode::kCorruptData,
        "[{}] got experts of {} dimensions, expected 2",
        weights.path(name),
        layer.shape.size()
    );
    kernels::WeightTensors tensors{
        .weight = is_transposed ? transposed(layer) : std::move(layer),
        .scales = {},
        .biases = {},
        .name = weights.path(name),
    };
    const PackKey key = pack_key(tensors, format);
    result.push_back({std::move(tensors), key});
  }
  return result;
}

// Reads the projections of all experts.
class ProjectionReader {
 public:
  ProjectionReader(const Weights& weights, const MoeNames& names, ExpertLinear::Shape shape)
      : weights_(weights), names_(names), shape_(shape) {}

  std::vector<Projection> read(std::string_view fused, const std::vector<ExpertLinear::Part>& parts)
      const {
    std::vector<Projection> projections;
    if (weights_.has(fused)) {
      int outputs = 0;
      for (const auto& part : parts) {
        outputs += part.outputs;
      }
      auto all = read_fused(weights_, fused, names_.fused_transposed, shape_.experts);
      projections.push_back(checked(std::move(all), outputs));
      return projections;
    }
    projections.reserve(parts.size());
    for (const auto& part : parts) {
      const auto stacked = weights_ / names_.stacks / part.stacked;
      auto all =
          stacked.has("weight")
              ? read_stacked(stacked, shape_.inputs, shape_.experts)
              : read_single(weights_ / names_.experts, part.single, shape_.inputs, shape_.experts);
      projections.push_back(checked(std::move(all), part.outputs));
    }
    return projections;
  }

 private:
  Projection checked(Projection projection, int outputs) const {
    for (const auto& [tensors, key] : projection) {
      check_linear_shape(tensors, key.format, shape_.inputs, outputs);
    }
    if (!kernels::on_cpu()) {
      unify(projection);
    }
    return projection;
  }

  const Weights& weights_;
  const MoeNames& names_;
  ExpertLinear::Shape shape_;
};

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

kernels::ExpertWeights pack_experts(std::vector<Projection> projections) {
  std::vector<std::vector<kernels::ExpertPart>> by_expert;
  by_expert.reserve(projections.front().size());
  for (std::size_t expert = 0; expert < projections.front().size(); ++expert) {
    by_expert.push_back(parts_of(projections, expert));
  }
  return kernels::ExpertWeights::pack(by_expert);
}

}  // namespace

ExpertLinear::ExpertLinear(
    const Weights& weights,
    const MoeNames& names,
    std::string_view fused,
    const std::vector<Part>& parts,
    Shape shape
)
    : weights_(pack_experts(ProjectionReader(weights, names, shape).read(fused, parts))) {
  modules_.reserve(parts.size());
  for (const auto& part : parts) {
    modules_.push_back((weights / names.stacks / part.stacked).path(""));
  }
}

mx::array ExpertLinear::operator()(
    const mx::array& x, const kernels::ExpertPermutation& sorted, const RowContext& adapters
) const {
  adapters.observe(x, sorted, modules_, weights_.experts());
  return kernels::expert_linear(x, sorted, weights_);
}

}  // namespace saker::nn
