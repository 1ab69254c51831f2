// SPDX-License-Identifier: Apache-2.0
#include "saker/load/files/quantization.h"

#include "saker/base/error.h"
#include "saker/base/json/json.h"
#include "saker/base/utf8.h"
#include "saker/load/files/quantization_mode.h"
#include "saker/nn/weights/weights.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace saker::load {
namespace {

using kernels::WeightFormat;

// One of the values that the mode allows. `place` is empty or ends with a dot.
int choice(
    const Json& object,
    const std::string& place,
    std::string_view key,
    int fallback,
    std::span<const int> allowed
) {
  const auto found = object.find(std::string(key));
  if (found == object.end() || found->is_null()) {
    return fallback;
  }
  for (const int value : allowed) {
    if (found->is_number_integer() && *found == value) {
      return value;
    }
  }
  throw Error(
      found->is_number_integer() ? ErrorCode::kUnsupported : ErrorCode::kCorruptData,
      fmt::format(
          "config: '{}{}' is {}, expected {}",
          place,
          key,
          describe_json(*found),
          fmt::join(allowed, ", ")
      )
  );
}

WeightFormat parse_format(const Json& object, const std::string& place) {
  std::string_view name = "affine";
  const auto found = object.find("mode");
  if (found != object.end() && !found->is_null()) {
    require(
        found->is_string(),
        ErrorCode::kCorruptData,
        "config: '{}mode' is {}, expected a string",
        place,
        describe_json(*found)
    );
    name = found->get_ref<const std::string&>();
  }
  const QuantizationMode* mode = find_mode(name);
  if (mode == nullptr) {
    throw Error(
        ErrorCode::kUnsupported,
        fmt::format(
            "config: '{}mode' is {}, expected affine, mxfp4, nvfp4 or mxfp8", place, quote(name)
        )
    );
  }
  return {
      .kind = mode->kind,
      .bits = choice(object, place, "bits", mode->usual.bits, mode->bits),
      .group_size = choice(object, place, "group_size", mode->usual.group_size, mode->group_sizes),
  };
}

struct Section {
  std::string_view name;
  const Json& fields;
};

// The section about the weights, if any. `quantization` is MLX's own; all tools use the other key.
std::optional<Section> find_section(const Json& config) {
  for (const std::string_view name : {"quantization", "quantization_config"}) {
    const auto found = config.find(std::string(name));
    if (found == config.end() || found->is_null()) {
      continue;
    }
    require(
        found->is_object(),
        ErrorCode::kCorruptData,
        "config: '{}' is {}, expected an object",
        name,
        describe_json(*found)
    );
    const auto method = found->find("quant_method");
    if (name == "quantization_config" && method != found->end() && !method->is_null()) {
      throw Error(
          ErrorCode::kUnsupported,
          fmt::format(
              "config: 'quantization_config.quant_method' is {}, expected MLX's quantization or "
              "none, "
              "or in a model's folder awq, bitnet, gptq, fp8, compressed-tensors, modelopt, mxfp4 "
              "or mxfp8",
              describe_json(*method)
          )
      );
    }
    return Section{name, *found};
  }
  return std::nullopt;
}

}  // namespace

nn::QuantizationConfig parse_quantization(const Json& config) {
  nn::QuantizationConfig result;
  require(
      config.is_object(),
      ErrorCode::kCorruptData,
      "config is {}, expected an object",
      describe_json(config)
  );
  const auto section = find_section(config);
  if (!section) {
    // Multimodal checkpoints describe their text model in a separate section.
    const auto text = config.find("text_config");
    return text != config.end() && text->is_object() ? parse_quantization(*text) : result;
  }
  result.format = parse_format(section->fields, fmt::format("{}.", section->name));
  for (const auto& [key, value] : section->fields.items()) {
    if (value.is_object()) {
      const std::string module = fmt::format("{}.{}.", section->name, key);
      result.overrides.insert_or_assign(key, parse_format(value, module));
    } else if (value.is_boolean() && !value.get<bool>()) {
      result.overrides.insert_or_assign(key, std::nullopt);
    }
  }
  return result;
}

}  // namespace saker::load
