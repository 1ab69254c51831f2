// SPDX-License-Identifier: Apache-2.0
#include "saker/load/convert/conversion.h"

#include "saker/base/error.h"
#include "saker/base/json/json_members.h"
#include "saker/base/utf8.h"
#include "saker/load/files/quantization.h"
#include "saker/load/files/safetensors.h"
#include "saker/nn/weights/stored_format.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

namespace saker::load {
namespace {

using kernels::WeightFormat;
using kernels::WeightKind;

constexpr std::string_view kWeight = ".weight";
// A warning lists at most this many tensor names.
constexpr std::size_t kListedTensors = 3;

bool is_float(DType dtype) {
  return dtype == DType::kFloat32 || dtype == DType::kFloat16 || dtype == DType::kBFloat16;
}

// The dtype that mlx-lm casts to.
std::optional<DType> config_dtype(const Json& config) {
  const auto given = config.find("torch_dtype");
  if (given != config.end() && given->is_string()) {
    return float_dtype(given->get<std::string>());
  }
  const auto text = config.find("text_config");
  if (text != config.end() && text->is_object()) {
    const auto nested = text->find("dtype");
    return nested != text->end() && nested->is_string() ? float_dtype(nested->get<std::string>())
                                                        : std::nullopt;
  }
  return std::nullopt;
}

std::string_view module_path(std::string_view weight) {
  return weight.substr(0, weight.size() - kWeight.size());
}

// True for tensors of modules that contain modules, which mlx-lm does not count as parameters.
bool is_of_a_whole(std::string_view name) {
  constexpr std::array<std::string_view, 9> kLeaves = {
      ".layer_scalar",
      ".A_log",
      ".dt_bias",
      ".router.scale",
      ".router.per_expert_scale",
      ".expert_bias",
      ".block_sparse_moe.e_score_correction_bias",
      ".mlp.e_score_correction_bias",
      ".self_attn.sinks",
  };
  return std::ranges::any_of(kLeaves, [&](std::string_view leaf) { return name.ends_with(leaf); });
}

// True for layers, stacks of layers and embeddings; norms have one dimension.
bool is_matrix(const ModelTensor& tensor) {
  return tensor.name.ends_with(kWeight) && is_float(tensor.dtype()) && tensor.shape().size() >= 2 &&
         tensor.shape().back() > 0;
}

std::int64_t decoded_columns(const ModelTensor& weight, const WeightFormat& codes) {
  return weight.shape().back() * 32 / codes.bits;
}

// Heads of models whose embedding is their head tell nothing new.
std::optional<std::string> unread_warning(std::vector<std::string> names) {
  std::erase_if(names, [](const std::string& name) {
    return name.find("lm_head.") != std::string::npos;
  });
  if (names.empty()) {
    return std::nullopt;
  }
  const std::size_t shown = std::min(names.size(), kListedTensors);
  std::vector<std::string> listed;
  for (std::size_t i = 0; i < shown; ++i) {
    listed.push_back(quote(names[i]));
  }
  return fmt::format(
      "left out: {} tensor{} that the model does not read: {}{}",
      names.size(),
      names.size() == 1 ? "" : "s",
      fmt::join(listed, ", "),
      shown < names.size() ? ", ..." : ""
  );
}

void check_codes(
    const ModelTensor& weight,
    const ModelTensor& scales,
    const ModelTensor* biases,
    const WeightFormat& format
) {
  const bool affine = format.kind == WeightKind::kAffine;
  auto groups = weight.shape();
  const std::int64_t bits = groups.empty() ? 0 : groups.back() * 32;
  const std::int64_t columns = bits / format.bits;
  const bool whole = is_of_mlx(format) && weight.dtype() == DType::kUInt32 && groups.size() >= 2 &&
                     bits % format.bits == 0 && columns % format.group_size == 0;
  if (whole) {
    groups.back() = columns / format.group_size;
  }
  const bool fits =
      whole && scales.shape() == groups && weight.parts.size() == scales.parts.size() &&
      (affine ? is_float(scales.dtype()) && biases != nullptr && biases->shape() == groups &&
                    biases->dtype() == scales.dtype() && biases->parts.size() == scales.parts.size()
              : scales.dtype() == DType::kUInt8);
  require(
      fits,
      ErrorCode::kCorruptData,
      "{}: {} {} with scales {} {}{} is not quantized with {} bits in groups of {} ({})",
      quote(weight.name),
      dtype_name(weight.dtype()),
      shape_text(weight.shape()),
      dtype_name(scales.dtype()),
      shape_text(scales.shape()),
      affine && biases == nullptr ? " and no biases" : "",
      format.bits,
      format.group_size,
      mode_name(format.kind)
  );
}

}  // namespace

Conversion::Conversion(Input input, const ConvertOptions& options)
    : input_(std::move(input)), options_(options) {
  leave_out_unread();
  for (const ModelTensor& tensor : input_.tensors) {
    by_name_.emplace(tensor.name, &tensor);
  }
  quantization_ = parse_quantization(input_.config);
  has_codes_ = std::ranges::any_of(input_.tensors, [&](const auto& one) { return has_codes(one); });
  dtype_ = options.dtype ? options.dtype : config_dtype(input_.config);
  check_request();
  if (options.quantize) {
    plan_ = plan_quantization(*options.quantize, input_.config, matrices());
  }
}

void Conversion::leave_out_unread() {
  if (!input_.roster) {
    return;
  }
  std::vector<std::string> unread;
  std::erase_if(input_.tensors, [&](const ModelTensor& tensor) {
    const bool read = input_.roster->has(tensor.name);
    if (!read) {
      unread.push_back(tensor.name);
    }
    return !read;
  });
  if (auto warning = unread_warning(std::move(unread))) {
    report_.warnings.push_back(*std::move(warning));
  }
}

void Conversion::check_request() const {
  require(
      !(options_.quantize && options_.dequantize),
      ErrorCode::kInvalidArgument,
      "a model is quantized or dequantized, not both"
  );
  require(
      !options_.quantize || !has_codes_ || input_.is_made,
      ErrorCode::kInvalidArgument,
      "the model is quantized already; dequantize it first"
  );
  require(
      !options_.dequantize || has_codes_ || input_.is_made,
      ErrorCode::kInvalidArgument,
      "the model is not quantized, so there is nothing to dequantize"
  );
  require(
      options_.importance.empty() || options_.quantize,
      ErrorCode::kInvalidArgument,
      "importance is for quantization, but none is asked for"
  );
  require(
      options_.importance.empty() || options_.quantize->format.kind == WeightKind::kAffine,
      ErrorCode::kInvalidArgument,
      "importance is for mode affine, not {}",
      options_.quantize ? mode_name(options_.quantize->format.kind) : ""
  );
}

std::vector<TensorStep> Conversion::steps() {
  std::vector<TensorStep> steps;
  std::size_t output = 0;
  for (const ModelTensor& tensor : input_.tensors) {
    auto step = step_for(tensor);
    if (!step) {
      continue;
    }
    add_importance(*step);
    step->output = output;
    output += outputs_of(*step).size();
    count(*step);
    steps.push_back(*std::move(step));
  }
  check_importance_used(steps);
  const auto recoded = std::ranges::count(steps, StepKind::kRecode, &TensorStep::kind);
  if (recoded > 0) {
    report_.warnings.push_back(fmt::format(
        "{} quantized weight{} rounded once more", recoded, recoded == 1 ? " is" : "s are"
    ));
  }
  return steps;
}

Json Conversion::config() const {
  std::map<std::string, Json> sorted;
  for (const auto& [key, value] : input_.config.items()) {
    sorted.emplace(key, value);
  }
  sorted.erase("_name_or_path");
  sorted.erase("vision_config");
  if (options_.dequantize) {
    sorted.erase("quantization");
    sorted.erase("quantization_config");
  }
  if (options_.quantize) {
    sorted["quantization"] = plan_.section;
  }
  if (sorted.contains("quantization")) {
    sorted["quantization_config"] = sorted["quantization"];
  }
  if (options_.dtype && sorted.contains("torch_dtype")) {
    sorted["torch_dtype"] = float_name(*options_.dtype);
  }
  return json_object(sorted);
}

std::vector<WeightShape> Conversion::matrices() const {
  std::vector<WeightShape> result;
  for (const ModelTensor& tensor : input_.tensors) {
    if (has_codes(tensor)) {
      result.push_back(
          {std::string(module_path(tensor.name)), decoded_columns(tensor, codes_of(tensor))}
      );
    } else if (is_matrix(tensor)) {
      result.push_back({std::string(module_path(tensor.name)), tensor.shape().back()});
    }
  }
  return result;
}

const ModelTensor* Conversion::sibling(std::string_view path, std::string_view leaf) const {
  const auto found = by_name_.find(fmt::format("{}.{}", path, leaf));
  return found != by_name_.end() ? found->second : nullptr;
}

bool Conversion::is_part_of_codes(std::string_view name) const {
  for (const std::string_view leaf : {".scales", ".biases"}) {
    if (name.ends_with(leaf)) {
      return sibling(name.substr(0, name.size() - leaf.size()), "weight") != nullptr;
    }
  }
  return false;
}

bool Conversion::has_codes(const ModelTensor& tensor) const {
  return tensor.name.ends_with(kWeight) && sibling(module_path(tensor.name), "scales") != nullptr;
}

// Codes with twice the inputs look like codes of half the width. So the configuration's inputs of
// down_proj must equal gate_proj's outputs.
void Conversion::check_columns(std::string_view path, int columns) const {
  constexpr std::string_view kDown = "down_proj";
  if (!path.ends_with(kDown)) {
    return;
  }
  const ModelTensor* gate =
      sibling(fmt::format("{}gate_proj", path.substr(0, path.size() - kDown.size())), "weight");
  const auto shape = gate != nullptr ? gate->shape() : std::vector<std::int64_t>();
  require(
      shape.size() < 2 || shape[shape.size() - 2] == columns,
      ErrorCode::kCorruptData,
      "{} has {} inputs as the configuration says, but its gate_proj has {} outputs",
      quote(path),
      columns,
      shape.size() < 2 ? 0 : shape[shape.size() - 2]
  );
}

// As the loader decides: by shapes if the module's inputs are known.
WeightFormat Conversion::codes_of(const ModelTensor& weight) const {
  const std::string_view path = module_path(weight.name);
  const ModelTensor* scales = sibling(path, "scales");
  const auto columns = input_.roster ? input_.roster->columns(path) : std::nullopt;
  std::optional<WeightFormat> format;
  if (columns) {
    check_columns(path, *columns);
    format = nn::stored_format(
        weight.parts.front(), scales->parts.front(), *columns, std::string(weight.name)
    );
  } else {
    const auto own = quantization_.overrides.find(path);
    format = own != quantization_.overrides.end() ? own->second : quantization_.format;
  }
  require(
      format.has_value(),
      ErrorCode::kCorruptData,
      "{} has scales, but the configuration says that it is not quantized",
      quote(path)
  );
  check_codes(weight, *scales, sibling(path, "biases"), *format);
  return *format;
}

std::optional<WeightFormat> Conversion::planned(const ModelTensor& tensor) const {
  if (!options_.quantize || !tensor.name.ends_with(kWeight)) {
    return std::nullopt;
  }
  const auto found = plan_.formats.find(module_path(tensor.name));
  return found != plan_.formats.end() ? std::optional(found->second) : std::nullopt;
}

// Empty for scales and biases that are merged into a weight.
std::optional<TensorStep> Conversion::step_for(const ModelTensor& tensor) const {
  const bool decodes = options_.dequantize || options_.quantize;
  if (decodes && is_part_of_codes(tensor.name)) {
    return std::nullopt;
  }
  if (decodes && has_codes(tensor)) {
    return decode_step(tensor);
  }
  TensorStep step;
  step.source = tensor;
  step.dtype = tensor.keeps_dtype ? tensor.dtype() : dtype_.value_or(tensor.dtype());
  if (const auto format = planned(tensor); format && is_matrix(tensor)) {
    step.kind = StepKind::kEncode;
    step.format = *format;
    return step;
  }
  require(
      tensor.dtype() != DType::kFloat64,
      ErrorCode::kUnsupported,
      "tensor {} is F64, expected F32, F16 or BF16",
      quote(tensor.name)
  );
  const bool changes = tensor.dtype() != step.dtype || tensor.offset != 0.0F || tensor.turned;
  step.kind = is_float(tensor.dtype()) && changes ? StepKind::kCast : StepKind::kCopy;
  return step;
}

TensorStep Conversion::decode_step(const ModelTensor& tensor) const {
  const std::string_view path = module_path(tensor.name);
  const ModelTensor* scales = sibling(path, "scales");
  const ModelTensor* biases = sibling(path, "biases");
  const WeightFormat codes = codes_of(tensor);
  // MLX's formats with small scales have no dtype of their own; mlx-lm gives them bfloat16.
  const bool affine = codes.kind == WeightKind::kAffine;
  TensorStep step;
  step.kind = StepKind::kDecode;
  step.source = tensor;
  step.codes = codes;
  step.scales = *scales;
  step.biases = affine ? std::optional(*biases) : std::nullopt;
  step.dtype =
      affine ? dtype_.value_or(scales->dtype()) : options_.dtype.value_or(DType::kBFloat16);
  if (const auto format = planned(tensor)) {
    step.kind = StepKind::kRecode;
    step.format = *format;
    step.decoded = step.dtype;
    step.dtype = dtype_.value_or(step.decoded);
  }
  return step;
}

void Conversion::add_importance(TensorStep& step) const {
  const bool encodes = step.kind == StepKind::kEncode || step.kind == StepKind::kRecode;
  if (!encodes || step.format.kind != WeightKind::kAffine) {
    return;
  }
  const std::string_view path = module_path(step.source.name);
  const auto found = options_.importance.find(models::roster_name(path));
  if (found == options_.importance.end()) {
    return;
  }
  const auto shape = step.source.shape();
  const std::int64_t experts = shape.size() == 3 ? shape.front() : 1;
  const std::int64_t expected = experts * step.columns();
  require(
      found->second.size() == static_cast<std::size_t>(expected),
      ErrorCode::kCorruptData,
      "importance of {} has {} numbers, expected {} as the model's weight",
      quote(path),
      found->second.size(),
      expected
  );
  step.importance = found->second;
}

void Conversion::check_importance_used(const std::vector<TensorStep>& steps) const {
  const bool used =
      std::ranges::any_of(steps, [](const TensorStep& step) { return !step.importance.empty(); });
  require(
      options_.importance.empty() || used,
      ErrorCode::kCorruptData,
      "the importance matrix has {} entries, but none for a module that is quantized",
      options_.importance.size()
  );
}

void Conversion::count(const TensorStep& step) {
  for (const PlannedTensor& output : outputs_of(step)) {
    report_.tensors += 1;
    report_.bytes += output.nbytes();
  }
  report_.quantized += step.kind == StepKind::kEncode || step.kind == StepKind::kRecode ? 1 : 0;
  report_.dequantized += step.kind == StepKind::kDecode ? 1 : 0;
  report_.parameters += parameters_of(step);
}

// Codes that stay count as the weights that they hold; their scales and biases don't count.
std::int64_t Conversion::parameters_of(const TensorStep& step) const {
  const std::string& name = step.source.name;
  if (is_part_of_codes(name) || is_of_a_whole(name)) {
    return 0;
  }
  const bool packed = step.kind == StepKind::kCopy && has_codes(step.source);
  return packed ? step.elements() * 32 / codes_of(step.source).bits : step.elements();
}

}  // namespace saker::load
