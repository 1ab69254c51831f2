// SPDX-License-Identifier: Apache-2.0
#include "saker/load/convert_model.h"

#include "saker/base/error.h"
#include "saker/base/json.h"
#include "saker/base/json/json_numbers.h"
#include "saker/base/utf8.h"
#include "saker/load/foreign/derived_tensor.h"
#include "saker/load/foreign/foreign_source.h"
#include "saker/load/foreign/stand_ins.h"
#include "saker/load/mlx_weights.h"
#include "saker/load/model_dir.h"
#include "saker/load/quantization.h"
#include "saker/load/safetensors.h"
#include "saker/load/tensor_steps.h"
#include "saker/load/weight_files.h"
#include "saker/models/detect.h"
#include "saker/models/dflash_config.h"
#include "saker/models/gemma4_assistant.h"
#include "saker/models/model.h"
#include "saker/nn/weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace saker::load {
namespace {

using kernels::WeightFormat;
using kernels::WeightKind;
using ByName = std::map<std::string, const ModelTensor*, std::less<>>;

constexpr std::string_view kWeight = ".weight";

bool is_float(DType dtype) {
  return dtype == DType::kFloat32 || dtype == DType::kFloat16 || dtype == DType::kBFloat16;
}

std::optional<DType> dtype_named(const std::string& name) {
  return name == "float32"    ? std::optional(DType::kFloat32)
         : name == "float16"  ? std::optional(DType::kFloat16)
         : name == "bfloat16" ? std::optional(DType::kBFloat16)
                              : std::nullopt;
}

// The dtype that mlx-lm casts to.
std::optional<DType> config_dtype(const Json& config) {
  const auto given = config.find("torch_dtype");
  if (given != config.end() && given->is_string()) {
    return dtype_named(given->get<std::string>());
  }
  const auto text = config.find("text_config");
  if (text != config.end() && text->is_object()) {
    const auto nested = text->find("dtype");
    return nested != text->end() && nested->is_string() ? dtype_named(nested->get<std::string>())
                                                        : std::nullopt;
  }
  return std::nullopt;
}

std::string_view module_path(std::string_view weight) {
  return weight.substr(0, weight.size() - kWeight.size());
}

// Tensors of modules that have modules inside, which mlx-lm does not count as parameters.
bool is_of_a_whole(std::string_view name) {
  constexpr std::array<std::string_view, 5> kLeaves = {
      ".layer_scalar", ".A_log", ".dt_bias", ".router.scale", ".router.per_expert_scale"
  };
  return std::ranges::any_of(kLeaves, [&](std::string_view leaf) { return name.ends_with(leaf); });
}

// Layers, stacks of layers and embeddings; norms have one dimension.
bool is_matrix(const ModelTensor& tensor) {
  return tensor.name.ends_with(kWeight) && is_float(tensor.dtype()) && tensor.shape().size() >= 2 &&
         tensor.shape().back() > 0;
}

class Conversion {
 public:
  Conversion(Json config, std::vector<ModelTensor> tensors, const ConvertOptions& options)
      : config_(std::move(config)), tensors_(std::move(tensors)), options_(options) {
    for (const ModelTensor& tensor : tensors_) {
      by_name_.emplace(tensor.name, &tensor);
    }
    quantization_ = parse_quantization(config_);
    dtype_ = options.dtype ? options.dtype : config_dtype(config_);
    check_request();
    if (options.quantize) {
      plan_ = plan_quantization(*options.quantize, config_, matrices());
    }
  }

  std::vector<TensorStep> steps() {
    std::vector<TensorStep> steps;
    std::size_t output = 0;
    for (const ModelTensor& tensor : tensors_) {
      auto step = step_for(tensor);
      if (!step) {
        continue;
      }
      step->output = output;
      output += outputs_of(*step).size();
      count(*step);
      steps.push_back(*std::move(step));
    }
    return steps;
  }

  // The configuration of what is written, sorted as mlx-lm sorts it.
  Json config() const {
    std::map<std::string, Json> sorted;
    for (const auto& [key, value] : config_.items()) {
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
    return sorted;
  }

  const ConvertReport& report() const { return report_; }

 private:
  void check_request() const {
    require(
        !(options_.quantize && options_.dequantize),
        ErrorCode::kInvalidArgument,
        "a model is quantized or dequantized, not both"
    );
    const bool quantized = quantization_.format.has_value();
    require(
        !options_.quantize || !quantized,
        ErrorCode::kInvalidArgument,
        "the model is quantized already; dequantize it first"
    );
    require(
        !options_.dequantize || quantized,
        ErrorCode::kInvalidArgument,
        "the model is not quantized, so there is nothing to dequantize"
    );
  }

  std::vector<WeightShape> matrices() const {
    std::vector<WeightShape> result;
    for (const ModelTensor& tensor : tensors_) {
      if (is_matrix(tensor)) {
        result.push_back({std::string(module_path(tensor.name)), tensor.shape().back()});
      }
    }
    return result;
  }

  const ModelTensor* sibling(std::string_view path, std::string_view leaf) const {
    const auto found = by_name_.find(fmt::format("{}.{}", path, leaf));
    return found != by_name_.end() ? found->second : nullptr;
  }

  // None for scales and biases that go into a weight.
  std::optional<TensorStep> step_for(const ModelTensor& tensor) const {
    TensorStep step;
    step.source = tensor;
    step.dtype = dtype_.value_or(tensor.dtype());
    if (options_.dequantize) {
      if (is_part_of_codes(tensor.name)) {
        return std::nullopt;
      }
      if (tensor.name.ends_with(kWeight) && sibling(module_path(tensor.name), "scales")) {
        return decode_step(tensor);
      }
    }
    if (options_.quantize && is_matrix(tensor)) {
      const auto format = plan_.formats.find(module_path(tensor.name));
      if (format != plan_.formats.end()) {
        step.kind = StepKind::kEncode;
        step.format = format->second;
        return step;
      }
    }
    require(
        tensor.dtype() != DType::kFloat64,
        ErrorCode::kUnsupported,
        "tensor {} is F64, expected F32, F16 or BF16",
        quote(tensor.name)
    );
    step.kind = is_float(tensor.dtype()) && tensor.dtype() != step.dtype ? StepKind::kCast
                                                                         : StepKind::kCopy;
    return step;
  }

  bool is_part_of_codes(std::string_view name) const {
    for (const std::string_view leaf : {".scales", ".biases"}) {
      if (name.ends_with(leaf)) {
        return sibling(name.substr(0, name.size() - leaf.size()), "weight") != nullptr;
      }
    }
    return false;
  }

  TensorStep decode_step(const ModelTensor& tensor) const {
    const std::string_view path = module_path(tensor.name);
    const ModelTensor* scales = sibling(path, "scales");
    const ModelTensor* biases = sibling(path, "biases");
    const auto own = quantization_.overrides.find(path);
    const auto format = own != quantization_.overrides.end() ? own->second : quantization_.format;
    require(
        format.has_value(),
        ErrorCode::kCorruptData,
        "{} has scales, but the configuration says that it is not quantized",
        quote(path)
    );
    check_codes(tensor, *scales, biases, *format);
    // Formats of MLX with small scales have no dtype of their own; mlx-lm gives them bfloat16.
    const bool affine = format->kind == WeightKind::kAffine;
    const DType natural =
        affine ? dtype_.value_or(scales->dtype()) : options_.dtype.value_or(DType::kBFloat16);
    return {
        .kind = StepKind::kDecode,
        .source = tensor,
        .scales = *scales,
        .biases = affine ? std::optional(*biases) : std::nullopt,
        .format = *format,
        .dtype = natural,
        .output = 0,
    };
  }

  static void check_codes(
      const ModelTensor& weight,
      const ModelTensor& scales,
      const ModelTensor* biases,
      const WeightFormat& format
  ) {
    const bool affine = format.kind == WeightKind::kAffine;
    auto groups = weight.shape();
    const std::int64_t bits = groups.empty() ? 0 : groups.back() * 32;
    const std::int64_t columns = bits / format.bits;
    const bool whole = weight.dtype() == DType::kUInt32 && groups.size() >= 2 &&
                       bits % format.bits == 0 && columns % format.group_size == 0;
    if (whole) {
      groups.back() = columns / format.group_size;
    }
    const bool fits =
        whole && scales.shape() == groups && weight.parts.size() == scales.parts.size() &&
        (affine
             ? is_float(scales.dtype()) && biases != nullptr && biases->shape() == groups &&
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

  void count(const TensorStep& step) {
    for (const PlannedTensor& output : outputs_of(step)) {
      report_.tensors += 1;
      report_.bytes += output.nbytes();
    }
    report_.quantized += step.kind == StepKind::kEncode ? 1 : 0;
    report_.dequantized += step.kind == StepKind::kDecode ? 1 : 0;
    report_.parameters += parameters_of(step);
  }

  // Codes that stay count as the weights that they hold, their scales and biases don't.
  std::int64_t parameters_of(const TensorStep& step) const {
    const std::string& name = step.source.name;
    if ((is_part_of_codes(name) && quantization_.format) || is_of_a_whole(name)) {
      return 0;
    }
    const bool packed = step.kind == StepKind::kCopy && step.source.dtype() == DType::kUInt32 &&
                        name.ends_with(kWeight) && quantization_.format;
    if (!packed) {
      return step.elements();
    }
    const auto own = quantization_.overrides.find(module_path(name));
    const bool has_own = own != quantization_.overrides.end() && own->second;
    return step.elements() * 32 / (has_own ? own->second->bits : quantization_.format->bits);
  }

  Json config_;
  std::vector<ModelTensor> tensors_;
  const ConvertOptions& options_;
  ByName by_name_;
  nn::QuantizationConfig quantization_;
  std::optional<DType> dtype_;
  QuantizationPlan plan_;
  ConvertReport report_;
};

std::vector<PlannedTensor> all_outputs(const std::vector<TensorStep>& steps) {
  std::vector<PlannedTensor> outputs;
  for (const TensorStep& step : steps) {
    for (PlannedTensor& output : outputs_of(step)) {
      outputs.push_back(std::move(output));
    }
  }
  return outputs;
}

// Returns a warning, or nothing.
std::string check(const Json& config, const TensorMap& tensors) {
  if (models::is_dflash_config(config)) {
    models::read_dflash_config(config);
    return {};
  }
  if (models::is_gemma4_assistant_config(config)) {
    models::read_gemma4_assistant_config(config);
    return {};
  }
  auto detected = models::detect_architecture(config, tensor_names(tensors));
  models::check_config(detected.config);
  return std::move(detected.warning);
}

void add_draft(const ConvertOptions& options, const ModelWriter& writer, ConvertReport& report) {
  ConvertOptions own;
  own.quantize = options.draft_quantize;
  own.max_shard_bytes = options.max_shard_bytes;
  own.progress = options.progress;
  const ConvertReport draft = convert_model(options.draft, writer.folder() / "draft", own);
  report.draft_bytes = draft.bytes;
  for (const std::string& warning : draft.warnings) {
    report.warnings.push_back("draft: " + warning);
  }
}

// What is converted, wherever it comes from.
struct Source {
  Json config;
  TensorMap tensors;
  std::vector<std::string> warnings;
  const foreign::StandIns* made = nullptr;  // Knows the tensors that have no bytes yet.
  std::filesystem::path folder;             // With texts and a draft; empty: `files`.
  std::map<std::string, std::string> files;
};

ConvertReport convert_source(
    Source source, const std::filesystem::path& target, const ConvertOptions& options
) {
  if (auto warning = check(source.config, source.tensors); !warning.empty()) {
    source.warnings.push_back(std::move(warning));
  }
  auto tensors = mlx_weights(source.tensors, source.config);
  Conversion conversion(std::move(source.config), std::move(tensors), options);
  const auto steps = conversion.steps();
  ModelWriter writer(target, all_outputs(steps), options.max_shard_bytes);
  ConvertReport report = conversion.report();
  if (!options.draft.empty()) {
    add_draft(options, writer, report);
  }
  run_steps(steps, source.made, writer, options.progress);
  writer.write_text("config.json", write_json(conversion.config(), 4));
  for (const auto& [name, text] : source.files) {
    writer.write_text(name, text);
    report.copied.push_back(name);
  }
  if (!source.folder.empty()) {
    report.copied = writer.copy_files(source.folder);
  }
  report.warnings.insert(report.warnings.end(), source.warnings.begin(), source.warnings.end());
  if (options.draft.empty() && !source.folder.empty() && find_draft(source.folder)) {
    report.warnings.emplace_back("the model's draft was not written: --draft names one");
  }
  writer.commit(report.parameters);
  return report;
}

Source open_folder(const std::filesystem::path& folder) {
  Json config = read_json_file(config_of(open_model_dir(folder)));
  ModelTensors read = read_model_tensors(folder);
  return {
      .config = std::move(config),
      .tensors = std::move(read.tensors),
      .warnings = std::move(read.warnings),
      .folder = folder,
      .files = {},
  };
}

// A file as it is has no steps; folders have, as their tensors have their makers' names.
ConvertReport convert_foreign(
    const foreign::ForeignModel& model,
    const std::filesystem::path& target,
    const ConvertOptions& options
) {
  const bool bare = !options.quantize && !options.dequantize && !options.dtype &&
                    options.draft.empty() && model.folder.empty();
  if (bare) {
    return foreign::write_foreign(model, target, options);
  }
  const foreign::StandIns made(model);
  return convert_source(
      {.config = model.config,
       .tensors = made.tensors(),
       .warnings = model.notes,
       .made = &made,
       .folder = model.folder,
       .files = model.files},
      target,
      options
  );
}

}  // namespace

ConvertReport convert_model(
    const std::filesystem::path& source,
    const std::filesystem::path& target,
    const ConvertOptions& options
) {
  const auto other = foreign::open_foreign(source);
  return other ? convert_foreign(*other, target, options)
               : convert_source(open_folder(source), target, options);
}

}  // namespace saker::load
