// SPDX-License-Identifier: Apache-2.0
#include "saker/nn/experts/expert_linear.h"

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

Projection read_stacked(const Weights& scope, int inputs, int experts) {
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
    auto tensors = scope.linear_tensors();
    const PackKey key = pack_key(tensors, scope.linear_format(inputs));
    result.push_back({std::move(tensors), key});
  }
  return result;
}

// Rows become columns. `in_turns`: every second column comes behind all others.
Tensor transposed(const Tensor& tensor, bool in_turns) {
  const auto rows = static_cast<std::size_t>(tensor.shape[0]);
  const auto columns = static_cast<std::size_t>(tensor.shape[1]);
  const std::size_t size = dtype_size(tensor.dtype);
  const auto bytes = std::make_shared<std::vector<std::byte>>(tensor.nbytes());
  const std::byte* from = tensor.data.get();
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t column = 0; column < columns; ++column, from += size) {
      const std::size_t to = in_turns ? column % 2 * (columns / 2) + column / 2 : column;
      std::copy_n(from, size, bytes->data() + (to * rows + row) * size);
    }
  }
  Tensor result = tensor;
  std::swap(result.shape[0], result.shape[1]);
  result.data = std::shared_ptr<const std::byte>(bytes, bytes->data());
  return result;
}

// All parts of an expert in one tensor.
Projection read_fused(
    const Weights& weights,
    const MoeNames& names,
    std::string_view name,
    std::size_t parts,
    int experts
) {
  const bool in_turns = names.fused_in_turns && parts > 1;
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
        .weight = names.fused_transposed ? transposed(layer, in_turns) : std::move(layer),
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
      auto all = read_fused(weights_, names_, fused, parts.size(), shape_.experts);
      projections.push_back(checked(std::move(all), outputs_of(parts)));
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

  // Biases [E, outputs] of all parts side by side; those of parts without one are 0. None if no part
  // has one.
  std::optional<mx::array> read_biases(
      std::string_view fused, const std::vector<ExpertLinear::Part>& parts
  ) const {
    std::optional<mx::array> biases;
    const std::string fused_biases = fmt::format("{}_bias", fused);
    if (weights_.has(fused_biases)) {
      biases = weights_.array(fused_biases, {shape_.experts, outputs_of(parts)});
      if (names_.fused_in_turns && parts.size() > 1) {
        const auto pairs = mx::reshape(*biases, {shape_.experts, -1, 2});
        biases = mx::flatten(mx::swapaxes(pairs, 1, 2), 1, 2);
      }
    } else {
      bool has_any = false;
      std::vector<mx::array> by_part;
      for (const auto& part : parts) {
        const auto own = biases_of(part);
        has_any = has_any || own;
        by_part.push_back(own.value_or(mx::zeros({shape_.experts, part.outputs})));
      }
      biases = has_any ? std::optional(mx::concatenate(by_part, 1)) : std::nullopt;
    }
    if (biases) {
      biases = mx::contiguous(*biases);
      biases->eval();
    }
    return biases;
  }

 private:
  static int outputs_of(const std::vector<ExpertLinear::Part>& parts) {
    int outputs = 0;
    for (const auto& part : parts) {
      outputs += part.outputs;
    }
    return outputs;
  }

  std::optional<mx::array> biases_of(const ExpertLinear::Part& part) const {
    const auto stacked = weights_ / names_.stacks / part.stacked;
    if (stacked.has("bias")) {
      return stacked.array("bias", {shape_.experts, part.outputs});
    }
    bool has_any = false;
    std::vector<mx::array> by_expert;
    for (int expert = 0; expert < shape_.experts; ++expert) {
      const auto scope = weights_ / names_.experts / fmt::to_string(expert) / part.single;
      const bool has_own = scope.has("bias");
      has_any = has_any || has_own;
      by_expert.push_back(has_own ? scope.vector("bias", part.outputs) : mx::zeros({part.outputs}));
    }
    return has_any ? std::optional(mx::stack(by_expert)) : std::nullopt;
  }

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

// The format of each expert in each part; a projection of all parts has them all in one.
std::vector<std::vector<kernels::WeightFormat>> formats_of(
    const std::vector<Projection>& projections, std::size_t parts
) {
  std::vector<std::vector<kernels::WeightFormat>> formats(parts);
  for (std::size_t part = 0; part < parts; ++part) {
    for (const auto& [tensors, key] : projections[std::min(part, projections.size() - 1)]) {
      formats[part].push_back(key.format);
    }
  }
  return formats;
}

kernels::ExpertWeights pack_experts(
    std::vector<Projection> projections, std::optional<mx::array> biases
) {
  std::vector<std::vector<kernels::ExpertPart>> by_expert;
  by_expert.reserve(projections.front().size());
  for (std::size_t expert = 0; expert < projections.front().size(); ++expert) {
    by_expert.push_back(parts_of(projections, expert));
  }
  const auto weights = kernels::ExpertWeights::pack(by_expert);
  return biases ? weights.with_biases(*std::move(biases)) : weights;
}

}  // namespace

struct ExpertLinear::ReadExperts {
  kernels::ExpertWeights weights;
  std::vector<std::vector<kernels::WeightFormat>> formats;  // By part and expert.
};

ExpertLinear::ReadExperts ExpertLinear::read_experts(
    const Weights& weights,
    const MoeNames& names,
    std::string_view fused,
    const std::vector<Part>& parts,
    Shape shape
) {
  const ProjectionReader reader(weights, names, shape);
  auto projections = reader.read(fused, parts);
  auto formats = formats_of(projections, parts.size());
  return {
      pack_experts(std::move(projections), reader.read_biases(fused, parts)), std::move(formats)
  };
}

ExpertLinear::ExpertLinear(
    const Weights& weights,
    const MoeNames& names,
    std::string_view fused,
    const std::vector<Part>& parts,
    Shape shape
)
    : ExpertLinear(
          weights, names, parts, shape, read_experts(weights, names, fused, parts, shape)
      ) {}

ExpertLinear::ExpertLinear(
    const Weights& weights,
    const MoeNames& names,
    const std::vector<Part>& parts,
    Shape shape,
    ReadExperts read
)
    : weights_(std::move(read.weights)) {
  const auto scope = (weights / names.experts).path("");
  int column = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    modules_.push_back((weights / names.stacks / parts[i].stacked).path(""));
    columns_.push_back({modules_.back(), column});
    column += parts[i].outputs;
    weights.add_module({
        .path = modules_.back(),
        .inputs = shape.inputs,
        .outputs = parts[i].outputs,
        .weight = {},
        .bias = {},
        .norm = {},
        .experts = ExpertStack{scope, std::string(parts[i].single), std::move(read.formats[i])},
    });
  }
}

mx::array ExpertLinear::operator()(
    const mx::array& x, const kernels::ExpertPermutation& sorted, const RowContext& adapters
) const {
  adapters.observe(x, sorted, modules_, weights_.experts());
  const auto y = kernels::expert_linear(x, sorted, weights_);
  return adapters.change_experts(y, x, sorted, columns_);
}

}  // namespace saker::nn
