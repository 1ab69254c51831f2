// SPDX-License-Identifier: Apache-2.0
#include "saker/load/importers/quantized_folder.h"

#include "saker/base/error.h"
#include "saker/base/utf8.h"
#include "saker/kernels/quantize/quantize_loops.h"
#include "saker/load/files/weight_files.h"
#include "saker/load/importers/byte_integers.h"
#include "saker/load/importers/declared_weights.h"
#include "saker/load/importers/expert_blocks.h"
#include "saker/load/importers/gptq_zeros.h"
#include "saker/load/importers/leftover_section.h"
#include "saker/load/importers/module_parts.h"
#include "saker/load/importers/packed_integers.h"
#include "saker/load/importers/quantization_section.h"
#include "saker/load/importers/small_floats.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace saker::load::importers {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 8> kMethods = {
    "awq", "bitnet", "compressed-tensors", "fp8", "gptq", "modelopt", "mxfp4", "mxfp8"
};
constexpr std::array<std::string_view, 7> kFormats = {
    "float-quantized",
    "int-quantized",
    "mixed-precision",
    "mxfp4-pack-quantized",
    "naive-quantized",
    "nvfp4-pack-quantized",
    "pack-quantized",
};
// Tensors that belong to a module's weight, by the weight's name.
constexpr std::array<std::string_view, 3> kBesideQweight = {"g_idx", "qzeros", "scales"};
constexpr std::array<std::string_view, 7> kBesideWeight = {
    "weight_g_idx",
    "weight_global_scale",
    "weight_scale",
    "weight_scale_2",
    "weight_scale_inv",
    "weight_shape",
    "weight_zero_point",
};
// Ranges of activations and caches, which we don't quantize.
constexpr std::array<std::string_view, 7> kUnused = {
    "activation_scale",
    "input_global_scale",
    "input_scale",
    "input_zero_point",
    "k_scale",
    "output_scale",
    "v_scale",
};

template <std::size_t N>
bool contains(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

struct Method {
  std::string name;
  Json section;
};

// The method of the configuration's section, or of its text model's.
std::optional<Method> method_of(const Json& config) {
  if (!config.is_object() || config.contains("quantization")) {
    return std::nullopt;
  }
  const auto section = config.find(kQuantizationSection);
  if (section == config.end() || section->is_null()) {
    const auto text = config.find("text_config");
    return text != config.end() ? method_of(*text) : std::nullopt;
  }
  const auto method = section->is_object() ? section->find("quant_method") : section->end();
  if (!section->is_object() || method == section->end() || !method->is_string() ||
      !contains(kMethods, method->get_ref<const std::string&>())) {
    return std::nullopt;
  }
  // ModelOpt's own file nests the settings one level deeper.
  const auto nested = section->find("quantization");
  const bool is_nested = nested != section->end() && nested->is_object();
  return Method{method->get<std::string>(), is_nested ? *nested : *section};
}

// The configuration, with the section that ModelOpt writes into a separate file.
Json read_config(const fs::path& folder) {
  constexpr const char* kOwnFile = "hf_quant_config.json";
  Json config = read_json_file(folder / "config.json");
  std::error_code ignored;
  if (!config.is_object() || config.contains(kQuantizationSection) ||
      config.contains("quantization") || !fs::is_regular_file(folder / kOwnFile, ignored)) {
    return config;
  }
  if (Json own = read_json_file(folder / kOwnFile); own.is_object()) {
    own["quant_method"] = "modelopt";
    config[kQuantizationSection] = std::move(own);
  }
  return config;
}

[[noreturn]] void refuse_field(const Method& method, const char* field, std::string_view expected) {
  const auto found = method.section.find(field);
  throw Error(
      ErrorCode::kUnsupported,
      fmt::format(
          "config: '{}.{}' is {} with {}, expected {}",
          kQuantizationSection,
          field,
          found == method.section.end() ? "missing" : describe_json(*found),
          method.name,
          expected
      )
  );
}

void check_variant(const Method& method) {
  const Json& section = method.section;
  if (method.name == "awq" || method.name == "gptq") {
    const std::int64_t bits = json_int(section, "bits", 4);
    const bool is_gptq = method.name == "gptq";
    if (bits != 4 && !(is_gptq && (bits == 2 || bits == 8))) {
      refuse_field(method, "bits", is_gptq ? "2, 4 or 8" : "4");
    }
    const auto version = section.find("version");
    if (version != section.end() && version->is_string() && *version != "gemm" &&
        *version != "GEMM") {
      refuse_field(method, "version", "gemm");
    }
  }
  if (method.name == "modelopt") {
    const std::string algorithm = json_string(section, "quant_algo", "");
    if (algorithm != "NVFP4" && algorithm != "FP8") {
      refuse_field(method, "quant_algo", "FP8 or NVFP4");
    }
  }
  if (method.name == "compressed-tensors" &&
      !contains(kFormats, json_string(section, "format", ""))) {
    refuse_field(method, "format", fmt::format("{}", fmt::join(kFormats, ", ")));
  }
}

// Candidate blocks for the scales of fp8: the section's, else the usual ones.
std::vector<BlockSize> block_sizes(const Json& section) {
  std::vector<BlockSize> sizes;
  if (const auto given = read_block_size(section, "weight_block_size")) {
    sizes.push_back(*given);
  }
  for (const DeclaredWeights& group : declared_groups(section, "float-quantized")) {
    if (group.block) {
      sizes.push_back(*group.block);
    }
  }
  return sizes.empty() ? std::vector{BlockSize{}} : sizes;
}

// MLX's own layout in another tool's configuration, as mlx-lm reads it.
std::optional<kernels::WeightFormat> mlx_format(const Method& method) {
  using kernels::WeightKind;
  const std::string format =
      method.name == "compressed-tensors" ? json_string(method.section, "format", "") : method.name;
  if (format.starts_with("mxfp4")) {
    return kernels::WeightFormat{WeightKind::kMxfp4, 4, 32};
  }
  if (format.starts_with("nvfp4")) {
    return kernels::WeightFormat{WeightKind::kNvfp4, 4, 16};
  }
  if (format == "mxfp8") {
    return kernels::WeightFormat{WeightKind::kMxfp8, 8, 32};
  }
  return format == "pack-quantized"
             ? std::optional(kernels::WeightFormat{WeightKind::kAffine, 4, 32})
             : std::nullopt;
}

// Removes the keys that conversions take for the dtype of all floats.
void erase_dtype(Json& config) {
  config.erase("torch_dtype");
  if (const auto text = config.find("text_config"); text != config.end() && text->is_object()) {
    text->erase("dtype");
  }
}

bool is_float(DType dtype) {
  return std::ranges::find(kFloats, dtype) != kFloats.end();
}

class QuantizedModel {
 public:
  QuantizedModel(const Method& method, const TensorMap& tensors)
      : method_(method),
        tensors_(tensors),
        blocks_(block_sizes(method.section)),
        packed_(declared_groups(method.section, "pack-quantized")),
        bytes_(declared_groups(method.section, "int-quantized")),
        zeros_(read_gptq_zeros(method.section, tensors)) {}

  ImportedModel build(const Json& config) {
    for (const auto& [name, tensor] : tensors_) {
      add(name, tensor);
    }
    for (const auto& [name, tensor] : plain_) {
      model_.tensors.push_back(plain(name, *tensor));
    }
    std::ranges::sort(model_.tensors, {}, [](const LazyTensor& tensor) -> const std::string& {
      return tensor.outputs.front().name;
    });
    require(
        modules_ > 0,
        ErrorCode::kCorruptData,
        "config: '{}.quant_method' is {}, but no tensor of the checkpoint is quantized so",
        kQuantizationSection,
        quote(method_.name)
    );
    model_.config = config;
    model_.config.erase(kQuantizationSection);
    if (const auto text = model_.config.find("text_config");
        text != model_.config.end() && text->is_object()) {
      text->erase(kQuantizationSection);
    }
    add_quantization(model_.config, formats_, declared_);
    if (!zeros_.note.empty()) {
      model_.notes.push_back(zeros_.note);
    }
    if (has_wide_scales_) {
      erase_dtype(model_.config);
    }
    if (dequantized_ > 0) {
      model_.notes.push_back(fmt::format(
          "{} {} of {} {} no format of MLX that holds {}: bfloat16 in its place",
          dequantized_,
          dequantized_ == 1 ? "weight" : "weights",
          method_.name,
          dequantized_ == 1 ? "has" : "have",
          dequantized_ == 1 ? "it" : "them"
      ));
    }
    return std::move(model_);
  }

 private:
  void add(const std::string& name, const Tensor& tensor) {
    const auto dot = name.rfind('.');
    const std::string path = name.substr(0, dot == std::string::npos ? 0 : dot);
    const std::string_view leaf =
        std::string_view(name).substr(path.size() + (path.empty() ? 0 : 1));
    const ModuleParts parts(tensors_, path);
    if (leaf == "qweight") {
      check_zeros(parts);
      const std::int64_t bits = json_int(method_.section, "bits", 4);
      add_codes(path, from_qweight(parts, zeros_.offset(parts), bits));
      dtype_ = parts.at("scales").dtype;
    } else if (leaf == "weight_packed") {
      add_packed(path, parts, tensor);
    } else if (leaf == "weight" && tensor.dtype == DType::kFloat8E4M3) {
      add_float8(path, parts);
    } else if (leaf == "weight" && tensor.dtype == DType::kInt8 && parts.find("weight_scale")) {
      add_codes(path, from_int8(parts, bytes_));
    } else if (leaf == "weight" && tensor.dtype == DType::kUInt8 && parts.find("weight_scale_2")) {
      add_floats(from_modelopt_nvfp4(parts));
    } else if (leaf == "weight" && tensor.dtype == DType::kUInt8 && method_.name == "bitnet") {
      add_codes(path, from_bitnet(parts, ternary_scale()));
      // A conversion would round scales to the dtype in the configuration.
      has_wide_scales_ = ternary_scale() == TernaryScale::kDivides;
    } else if (is_expert_blocks(parts, leaf)) {
      for (LazyTensor& stack : from_expert_blocks(parts, leaf)) {
        const std::string& weight = stack.outputs.front().name;
        const std::string module = weight.substr(0, weight.rfind('.'));
        add_codes(module, {std::move(stack), {kernels::WeightKind::kMxfp4, 4, 32}});
      }
    } else if (is_expert_bias(parts, leaf)) {
      for (LazyTensor& bias : from_expert_bias(parts, leaf)) {
        model_.tensors.push_back(std::move(bias));
      }
    } else if (!is_beside(parts, leaf) && !contains(kUnused, leaf)) {
      plain_.emplace_back(name, &tensor);
      if (leaf == "scales" && parts.find("weight") != nullptr && mlx_format(method_)) {
        formats_.emplace(path, *mlx_format(method_));
        ++modules_;
      }
    }
  }

  static bool is_beside(const ModuleParts& parts, std::string_view leaf) {
    return is_expert_scales(parts, leaf) ||
           (contains(kBesideQweight, leaf) && parts.find("qweight") != nullptr) ||
           (contains(kBesideWeight, leaf) &&
            (parts.find("weight_packed") != nullptr || parts.find("weight") != nullptr));
  }

  // If the configuration promises zero points, some must exist; single modules may have none.
  void check_zeros(const ModuleParts& parts) const {
    const bool promised = method_.name == "awq" ? json_bool(method_.section, "zero_point", false)
                                                : !json_bool(method_.section, "sym", true);
    const auto are_zeros = [](const auto& entry) { return entry.first.ends_with(".qzeros"); };
    if (promised && std::ranges::none_of(tensors_, are_zeros)) {
      parts.at("qzeros");  // Throws, naming it.
    }
  }

  TernaryScale ternary_scale() const {
    return json_string(method_.section, "linear_class", "") == "autobitlinear"
               ? TernaryScale::kMultiplies
               : TernaryScale::kDivides;
  }

  void add_codes(const std::string& path, AffineModule module) {
    model_.tensors.push_back(std::move(module.tensor));
    formats_.emplace(path, module.format);
    if (module.is_declared) {
      declared_.insert(path);
    }
    ++modules_;
  }

  // Declared scales of E8M0 (powers of two) make it MLX's mxfp8.
  void add_float8(const std::string& path, const ModuleParts& parts) {
    if (json_string(method_.section, "scale_fmt", "") == "ue8m0") {
      if (auto tensor = from_float8_powers(parts, blocks_)) {
        add_codes(path, {std::move(*tensor), {kernels::WeightKind::kMxfp8, 8, 32}});
        return;
      }
    }
    add_floats(from_float8(parts, blocks_));
  }

  void add_floats(LazyTensor tensor) {
    model_.tensors.push_back(std::move(tensor));
    ++dequantized_;
    ++modules_;
  }

  void add_packed(const std::string& path, const ModuleParts& parts, const Tensor& codes) {
    if (codes.dtype != DType::kUInt8) {
      add_codes(path, from_weight_packed(parts, packed_));
    } else if (parts.at("weight_scale").dtype == DType::kUInt8) {
      add_codes(path, {from_mxfp4(parts), {kernels::WeightKind::kMxfp4, 4, 32}});
    } else {
      add_floats(from_nvfp4(parts));
    }
  }

  // Unchanged, or in the dtype of the scales, which mlx-lm gives all floats of these models.
  LazyTensor plain(const std::string& name, const Tensor& tensor) const {
    const DType dtype = dtype_ && is_float(tensor.dtype) ? *dtype_ : tensor.dtype;
    LazyTensor result;
    result.outputs = {{name, dtype, tensor.shape}};
    result.rows = tensor.shape.size() < 2 || tensor.element_count() == 0 ? 1 : tensor.shape.front();
    result.release = tensor.release;
    const std::size_t count = static_cast<std::size_t>(tensor.element_count() / result.rows);
    if (dtype == tensor.dtype) {
      result.same = tensor;
    }
    result.make = [tensor,
                   dtype,
                   count](std::int64_t first, std::int64_t rows, std::span<std::byte* const> to) {
      const std::size_t values = count * static_cast<std::size_t>(rows);
      const std::size_t size = dtype_size(tensor.dtype);
      const std::byte* from = tensor.data.get() + static_cast<std::size_t>(first) * count * size;
      if (values == 0) {
        return;
      }
      if (dtype == tensor.dtype) {
        std::memcpy(to[0], from, values * size);
        return;
      }
      std::vector<float> wide(values);
      kernels::quantize_loops().widen(from, tensor.dtype, values, wide.data());
      kernels::quantize_loops().narrow(wide.data(), dtype, values, to[0]);
    };
    return result;
  }

  const Method& method_;
  const TensorMap& tensors_;
  std::vector<BlockSize> blocks_;
  std::vector<DeclaredWeights> packed_;  // Groups of the formats pack-quantized
  std::vector<DeclaredWeights> bytes_;   // and int-quantized.
  GptqZeros zeros_;
  ImportedModel model_;
  std::vector<std::pair<std::string, const Tensor*>> plain_;
  std::map<std::string, kernels::WeightFormat> formats_;  // By path.
  std::set<std::string> declared_;  // Modules whose bits only the configuration tells.
  std::optional<DType> dtype_;
  bool has_wide_scales_ = false;
  std::size_t modules_ = 0;
  std::size_t dequantized_ = 0;
};

struct Source {
  Json config;
  Method method;
  ModelTensors read;
};

// Empty for folders without a method that we know, and for those with plain weights.
std::optional<Source> open_source(const fs::path& folder) {
  std::error_code ignored;
  if (!fs::is_regular_file(folder / "config.json", ignored)) {
    return std::nullopt;
  }
  Json config = read_config(folder);
  auto method = method_of(config);
  if (!method) {
    return std::nullopt;
  }
  ModelTensors read = read_model_tensors(folder);
  return are_plain(read)
             ? std::nullopt
             : std::optional(Source{std::move(config), *std::move(method), std::move(read)});
}

}  // namespace

std::optional<ImportedModel> read_quantized(const Json& config, const TensorMap& tensors) {
  const auto method = method_of(config);
  if (!method) {
    return std::nullopt;
  }
  check_variant(*method);
  return QuantizedModel(*method, tensors).build(config);
}

bool is_quantized(const fs::path& folder) {
  return open_source(folder).has_value();
}

std::optional<ImportedModel> open_quantized(const fs::path& folder) {
  auto source = open_source(folder);
  if (!source) {
    return std::nullopt;
  }
  check_variant(source->method);
  check_complete(source->read, source->config);
  check_layers(source->read, source->config);
  ImportedModel model = QuantizedModel(source->method, source->read.tensors).build(source->config);
  model.folder = folder;
  model.notes.insert(model.notes.end(), source->read.warnings.begin(), source->read.warnings.end());
  return model;
}

}  // namespace saker::load::importers
