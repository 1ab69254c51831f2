// SPDX-License-Identifier: Apache-2.0
#include "saker/adapters/expert_modules.h"

#include "saker/adapters/source_parts.h"
#include "saker/base/error.h"
#include "saker/load/files/safetensors.h"
#include "saker/nn/weights/pack_key.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <system_error>

namespace saker::adapters {
namespace {

constexpr std::string_view kExperts = "experts";

// "A.b" -> "A" and "b".
std::pair<std::string_view, std::string_view> split_last(std::string_view name) {
  const auto dot = name.rfind('.');
  return dot == std::string_view::npos ? std::pair<std::string_view, std::string_view>{{}, name}
                                       : std::pair{name.substr(0, dot), name.substr(dot + 1)};
}

// "layers.0.mlp.switch_mlp" -> "layers.0.mlp.experts".
std::string single_scope(std::string_view scope) {
  const auto [around, last] = split_last(scope);
  const std::string_view outer = last == "switch_mlp" || last == "switch_glu" ? around : scope;
  return split_last(outer).second == kExperts ? std::string(outer)
                                              : fmt::format("{}.{}", outer, kExperts);
}

// "layers.0.mlp.experts.3.up_proj" in parts.
struct SingleName {
  std::string_view scope;
  int expert = 0;
  std::string_view projection;
};

std::optional<SingleName> split_single(std::string_view name) {
  const auto [around, projection] = split_last(name);
  const auto [scope, digits] = split_last(around);
  SingleName result{.scope = scope, .projection = projection};
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), result.expert);
  const bool is_number =
      error == std::errc() && end == digits.data() + digits.size() && result.expert >= 0;
  return is_number && !scope.empty() ? std::optional(result) : std::nullopt;
}

void check_matrix(
    const std::string& name, const Tensor& tensor, const std::vector<std::int64_t>& expected
) {
  require(
      tensor.shape == expected,
      ErrorCode::kInvalidArgument,
      "[{}] the adapter has shape {}, the model needs {}",
      name,
      shape_text(tensor.shape),
      shape_text(expected)
  );
}

void check_source(const nn::Module& stack, const ModuleSource& source) {
  require(
      source.low_rank && !source.weight && !source.bias && !source.low_rank->bias &&
          !source.low_rank->magnitude,
      ErrorCode::kUnsupported,
      "[{}] a low-rank change of an expert can be run, no other",
      source.name
  );
  const LowRank& low_rank = *source.low_rank;
  const auto rank = low_rank.up.shape.at(1);
  check_matrix(source.name, low_rank.up, {stack.outputs, rank});
  check_matrix(source.name, low_rank.down, {rank, stack.inputs});
}

// [M, N] -> [rows, columns], filled with zeros.
Tensor padded(const Tensor& matrix, std::int64_t rows, std::int64_t columns) {
  const auto wide = static_cast<std::size_t>(columns);
  std::vector<float> values(static_cast<std::size_t>(rows) * wide, 0.0F);
  if (matrix.data != nullptr) {
    const auto from = to_floats(matrix);
    const auto own = static_cast<std::size_t>(matrix.shape.at(1));
    for (std::size_t row = 0; row < from.size() / own; ++row) {
      std::copy_n(from.data() + row * own, own, values.data() + row * wide);
    }
  }
  return float_tensor({rows, columns}, std::move(values));
}

kernels::ExpertWeights pack_stack(const std::string& name, std::vector<Tensor> tensors) {
  const auto same = [&](const Tensor& tensor) { return tensor.dtype == tensors.front().dtype; };
  const bool is_uniform = std::ranges::all_of(tensors, same);
  const DType dtype = is_uniform ? tensors.front().dtype : DType::kFloat32;
  const auto kind = dtype == DType::kFloat32   ? kernels::WeightKind::kFloat32
                    : dtype == DType::kFloat16 ? kernels::WeightKind::kFloat16
                                               : kernels::WeightKind::kBFloat16;
  std::vector<std::vector<kernels::WeightTensors>> experts;
  experts.reserve(tensors.size());
  for (const Tensor& tensor : tensors) {
    kernels::WeightTensors weight{
        .weight = is_uniform ? tensor : nn::as_float32(tensor),
        .scales = {},
        .biases = {},
        .name = name,
    };
    weight.weight.release = nullptr;  // The source may be bound again.
    experts.push_back({std::move(weight)});
  }
  return kernels::ExpertWeights::pack(experts, {.kind = kind});
}

}  // namespace

std::string single_expert(std::string_view stack, int expert) {
  const auto [scope, name] = split_last(stack);
  return fmt::format("{}.{}.{}", single_scope(scope), expert, name);
}

bool is_single_expert(std::string_view module) {
  const auto single = split_single(module);
  return single && split_last(single->scope).second == kExperts;
}

ExpertModules::ExpertModules(const std::vector<nn::Module>& modules) {
  for (const nn::Module& module : modules) {
    if (!module.experts) {
      continue;
    }
    // The model's own names, and what mlx-lm's become.
    const auto [scope, name] = split_last(module_name(module.path));
    stacks_.emplace(
        std::pair(std::string(module_name(module.experts->scope)), module.experts->name), &module
    );
    stacks_.emplace(std::pair(single_scope(scope), std::string(name)), &module);
  }
}

std::optional<ExpertModules::Expert> ExpertModules::find(std::string_view name) const {
  const auto single = split_single(name);
  if (!single) {
    return std::nullopt;
  }
  const auto found =
      stacks_.find(std::pair(std::string(single->scope), std::string(single->projection)));
  if (found == stacks_.end() ||
      static_cast<std::size_t>(single->expert) >= found->second->experts->formats.size()) {
    return std::nullopt;
  }
  return Expert{found->second, single->expert};
}

std::shared_ptr<const nn::ExpertsDelta> experts_delta(
    const nn::Module& stack, const ExpertSources& sources
) {
  std::int64_t rank = 0;
  for (const auto& [expert, source] : sources) {
    check_source(stack, source);
    rank = std::max(rank, source.low_rank->up.shape.at(1));
  }
  const std::size_t count = stack.experts->formats.size();
  std::vector<Tensor> downs(count);
  std::vector<Tensor> ups(count);
  std::vector<float> scales(count, 0.0F);
  for (std::size_t expert = 0; expert < count; ++expert) {
    const auto found = sources.find(static_cast<int>(expert));
    const bool is_there = found != sources.end();
    const Tensor& down = is_there ? found->second.low_rank->down : downs[expert];
    const Tensor& up = is_there ? found->second.low_rank->up : ups[expert];
    const bool fits = is_there && up.shape.at(1) == rank;
    downs[expert] = fits ? down : padded(down, rank, stack.inputs);
    ups[expert] = fits ? up : padded(up, stack.outputs, rank);
    scales[expert] = is_there ? found->second.low_rank->scale : 0.0F;
  }
  mx::array by_expert(scales.begin(), {static_cast<int>(count)});
  by_expert.eval();
  const std::string& name = sources.begin()->second.name;
  return std::make_shared<const nn::ExpertsDelta>(nn::ExpertsDelta{
      pack_stack(name, std::move(downs)), pack_stack(name, std::move(ups)), std::move(by_expert)
  });
}

}  // namespace saker::adapters
