// SPDX-License-Identifier: Apache-2.0
#include "saker/nn/weights/weights.h"

#include "saker/base/error.h"
#include "saker/nn/weights/pack_key.h"
#include "saker/nn/weights/stored_format.h"

#include <fmt/ranges.h>

#include <mutex>
#include <set>

namespace saker::nn {

struct Weights::Map {
  std::map<std::string, Tensor, std::less<>> tensors;
  QuantizationConfig quantization;
  MakeTensor make;
  // Guards made tensors and the members below: several threads may build layers.
  std::mutex mutex;
  std::set<std::string, std::less<>> taken;
  std::vector<Module> modules;
};

namespace {

bool is_float(DType dtype) {
  return dtype == DType::kFloat32 || dtype == DType::kFloat16 || dtype == DType::kBFloat16 ||
         dtype == DType::kFloat64;
}

kernels::WeightFormat format_of_floats(DType dtype, const std::string& path) {
  switch (dtype) {
    case DType::kFloat32:
      return {.kind = kernels::WeightKind::kFloat32};
    case DType::kFloat16:
      return {.kind = kernels::WeightKind::kFloat16};
    case DType::kBFloat16:
      return {.kind = kernels::WeightKind::kBFloat16};
    default:
      throw Error(
          ErrorCode::kUnsupported,
          fmt::format("[{}] dtype {}, expected F32, F16 or BF16", path, dtype_name(dtype))
      );
  }
}

// One layer of a stack [count, ...]. Mapped pages leave memory with the stack's last layer.
Tensor layer_of(const Tensor& stack, int index) {
  Tensor layer;
  layer.dtype = stack.dtype;
  layer.shape.assign(stack.shape.begin() + 1, stack.shape.end());
  const auto offset = static_cast<std::size_t>(index) * layer.nbytes();
  layer.data = std::shared_ptr<const std::byte>(stack.data, stack.data.get() + offset);
  if (index + 1 == stack.shape.front()) {
    layer.release = stack.release;
  }
  return layer;
}

}  // namespace

Weights::Weights(
    std::map<std::string, Tensor, std::less<>> tensors,
    QuantizationConfig quantization,
    MakeTensor make
)
    : map_(std::make_shared<Map>()) {
  map_->tensors = std::move(tensors);
  map_->quantization = std::move(quantization);
  map_->make = std::move(make);
}

Weights Weights::operator/(std::string_view name) const {
  Weights scope = *this;
  scope.scope_ = path(name);
  return scope;
}

std::string Weights::path(std::string_view name) const {
  if (scope_.empty() || name.empty()) {
    return scope_.empty() ? std::string(name) : scope_;
  }
  return fmt::format("{}.{}", scope_, name);
}

bool Weights::has(std::string_view name) const {
  return map_->tensors.contains(path(name));
}

std::optional<Tensor> Weights::find(std::string_view name) const {
  const auto found = map_->tensors.find(path(name));
  if (found == map_->tensors.end()) {
    return std::nullopt;
  }
  const std::lock_guard lock(map_->mutex);
  const Tensor& tensor = found->second;
  return Tensor{.dtype = tensor.dtype, .shape = tensor.shape, .data = nullptr, .release = {}};
}

Tensor Weights::take(std::string_view name) const {
  const auto found = map_->tensors.find(path(name));
  require(
      found != map_->tensors.end(), ErrorCode::kCorruptData, "[{}] tensor is missing", path(name)
  );
  const std::lock_guard lock(map_->mutex);
  map_->taken.insert(found->first);
  Tensor& tensor = found->second;
  if (tensor.data == nullptr && map_->make) {
    tensor = map_->make(found->first);
    tensor.release = [weak = std::weak_ptr(map_), &tensor] {
      if (const auto map = weak.lock()) {
        const std::lock_guard forgets(map->mutex);
        tensor.data.reset();
      }
    };
  }
  return tensor;
}

mx::array Weights::vector(std::string_view name, int size) const {
  return array(name, {size});
}

mx::array Weights::array(std::string_view name, const std::vector<int>& shape) const {
  const auto found = take(name);
  require(
      std::ranges::equal(found.shape, shape),
      ErrorCode::kCorruptData,
      "[{}] shape {}, expected [{}]",
      path(name),
      shape_text(found.shape),
      fmt::join(shape, ", ")
  );
  require(
      is_float(found.dtype),
      ErrorCode::kCorruptData,
      "[{}] dtype {}, expected F32, F16, BF16 or F64",
      path(name),
      dtype_name(found.dtype)
  );
  const auto values = to_floats(found);
  return mx::array(values.begin(), mx::Shape(shape.begin(), shape.end()), mx::float32);
}

kernels::WeightTensors Weights::linear_tensors() const {
  const auto take_optional = [&](std::string_view name) {
    return has(name) ? std::optional(take(name)) : std::nullopt;
  };
  kernels::WeightTensors result{
      .weight = take("weight"),
      .scales = take_optional("scales"),
      .biases = take_optional("biases"),
      .name = path("weight"),
  };
  if (result.scales && result.biases && result.scales->dtype != result.biases->dtype &&
      is_float(result.scales->dtype) && is_float(result.biases->dtype)) {
    result.scales = as_float32(*result.scales);
    result.biases = as_float32(*result.biases);
  }
  return result;
}

kernels::WeightFormat Weights::linear_format(int columns) const {
  const auto found = find("weight");
  require(found.has_value(), ErrorCode::kCorruptData, "[{}] tensor is missing", path("weight"));
  const Tensor& weight = *found;
  const auto& overrides = map_->quantization.overrides;
  const auto scales = find("scales");
  // Float weights are plain even if the configuration still describes codes.
  if (!scales && is_float(weight.dtype)) {
    return format_of_floats(weight.dtype, path("weight"));
  }
  if (const auto entry = overrides.find(scope_); entry != overrides.end()) {
    return entry->second ? *entry->second : format_of_floats(weight.dtype, path("weight"));
  }
  if (scales) {
    return stored_format(weight, *scales, columns, path("weight"));
  }
  return format_of_floats(weight.dtype, path("weight"));
}

kernels::WeightFormat Weights::float_format(std::string_view name) const {
  const auto found = find(name);
  require(found.has_value(), ErrorCode::kCorruptData, "[{}] tensor is missing", path(name));
  return format_of_floats(found->dtype, path(name));
}

std::vector<Tensor> Weights::stack(std::string_view name, int count) const {
  const Tensor whole = take(name);
  require(
      whole.shape.size() > 1 && whole.shape.front() == count,
      ErrorCode::kCorruptData,
      "[{}] shape {}, expected a stack of {} layers",
      path(name),
      shape_text(whole.shape),
      count
  );
  std::vector<Tensor> parts;
  parts.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    parts.push_back(layer_of(whole, i));
  }
  return parts;
}

std::vector<kernels::WeightTensors> Weights::stacked_tensors(int count) const {
  const auto stacks = linear_tensors();
  const auto check = [&](const std::optional<Tensor>& stack, std::string_view name) {
    require(
        !stack || (stack->shape.size() == 3 && stack->shape.front() == count),
        ErrorCode::kCorruptData,
        "[{}] shape {}, expected a stack of {} layers",
        path(name),
        stack ? shape_text(stack->shape) : "",
        count
    );
  };
  check(stacks.weight, "weight");
  check(stacks.scales, "scales");
  check(stacks.biases, "biases");
  const auto layer = [](const std::optional<Tensor>& stack, int index) {
    return stack ? std::optional(layer_of(*stack, index)) : std::nullopt;
  };
  std::vector<kernels::WeightTensors> result;
  result.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    result.push_back({
        .weight = layer_of(stacks.weight, i),
        .scales = layer(stacks.scales, i),
        .biases = layer(stacks.biases, i),
        .name = stacks.name,
    });
  }
  return result;
}

void Weights::add_module(Module module) const {
  const std::lock_guard lock(map_->mutex);
  map_->modules.push_back(std::move(module));
}

std::vector<Module> Weights::modules() const {
  const std::lock_guard lock(map_->mutex);
  return map_->modules;
}

std::vector<std::string> Weights::unused() const {
  const std::lock_guard lock(map_->mutex);
  std::vector<std::string> names;
  for (const auto& [name, tensor] : map_->tensors) {
    if (!map_->taken.contains(name)) {
      names.push_back(name);
    }
  }
  return names;
}

}  // namespace saker::nn
