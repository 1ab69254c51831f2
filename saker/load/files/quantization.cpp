// SPDX-License-Identifier: Apache-2.0
#include "saker/load/files/quantization.h"

#include "saker/base/error.h"
#include "saker/base/json/json.h"
#include "saker/base/utf8.h"
#include "saker/kernels/storage/packed_weight.h"
#include "saker/nn/weights/weights.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace saker::load {
namespace {

using kernels::WeightFormat;
using kernels::WeightKind;

constexpr std::array<std::int64_t, 6> kAffineBits = {2, 3, 4, 5, 6, 8};
constexpr std::array<std::int64_t, 3> kAffineGroups = {32, 64, 128};
constexpr std::array<std::int64_t, 1> kFourBits = {4};
constexpr std::array<std::int64_t, 1> kEightBits = {8};
constexpr std::array<std::int64_t, 1> kGroup16 = {16};
constexpr std::array<std::int64_t, 1> kGroup32 = {32};

struct Mode {
  std::string_view name;
  WeightKind kind;
  std::span<const std::int64_t> bits;
  std::span<const std::int64_t> groups;
  std::int64_t default_bits;
  std::int64_t default_group;
};

constexpr std::array<Mode, 4> kModes = {{
    {"affine", WeightKind::kAffine, kAffineBits, kAffineGroups, 4, 64},
    {"mxfp4", WeightKind::kMxfp4, kFourBits, kGroup32, 4, 32},
    {"nvfp4", WeightKind::kNvfp4, kFourBits, kGroup16, 4, 16},
    {"mxfp8", WeightKind::kMxfp8, kEightBits, kGroup32, 8, 32},
}};

// One of the values that the mode allows. `place` is empty or ends with a dot.
int choice(
    const Json& object,
    const std::string& place,
    std::string_view key,
    std::int64_t fallback,
    std::span<const std::int64_t> allowed
) {
  const auto found = object.find(std::string(key));
  if (found == object.end() || found->is_null()) {
    return static_cast<int>(fallback);
  }
  for (const std::int64_t value : allowed) {
    if (found->is_number_integer() && *found == value) {
      return static_cast<int>(value);
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
  const auto* mode =
      std::find_if(kModes.begin(), kModes.end(), [&](const Mode& m) { return m.name == name; });
  if (mode == kModes.end()) {
    throw Error(
        ErrorCode::kUnsupported,
        fmt::format(
            "config: '{}mode' is {}, expected affine, mxfp4, nvfp4 or mxfp8", place, quote(name)
        )
    );
  }
  return {
      .kind = mode->kind,
      .bits = choice(object, place, "bits", mode->default_bits, mode->bits),
      .group_size = choice(object, place, "group_size", mode->default_group, mode->groups),
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
