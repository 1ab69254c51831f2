// SPDX-License-Identifier: Apache-2.0
#include "saker/load/importers/leftover_section.h"

#include "saker/base/error.h"
#include "saker/base/tensor.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace saker::load::importers {
namespace {

bool is_of_codes(const Tensor& tensor) {
  switch (tensor.dtype) {
    case DType::kFloat32:
    case DType::kFloat16:
    case DType::kBFloat16:
    case DType::kFloat64:
    case DType::kBool:
    case DType::kInt64:  // Positions that old exporters stored.
      return false;
    default:
      return tensor.shape.size() >= 2;
  }
}

// The section in which a tool names itself, of the configuration or of its text model.
Json* find_section(Json& config) {
  const auto section = config.find(kQuantizationSection);
  if (section == config.end() || section->is_null()) {
    const auto text = config.find("text_config");
    return text != config.end() && text->is_object() ? find_section(*text) : nullptr;
  }
  const auto method = section->is_object() ? section->find("quant_method") : section->end();
  return section->is_object() && method != section->end() && !method->is_null() ? &config : nullptr;
}

}  // namespace

bool are_plain(const ModelTensors& read) {
  return std::ranges::none_of(
             read.tensors, [](const auto& entry) { return is_of_codes(entry.second); }
         ) &&
         std::ranges::none_of(read.errors, [](const auto& entry) {
           return entry.second.code() == ErrorCode::kUnsupported &&
                  std::string_view(entry.first).ends_with(".weight");
         });
}

PlainConfig without_leftover(Json config, const ModelTensors& read) {
  if (!config.is_object() || config.contains("quantization") || !are_plain(read)) {
    return {std::move(config), {}};
  }
  Json* const holder = find_section(config);
  if (holder == nullptr) {
    return {std::move(config), {}};
  }
  std::string warning = fmt::format(
      "config: '{}' names {}, but no weight is quantized: it is ignored",
      kQuantizationSection,
      describe_json((*holder)[kQuantizationSection]["quant_method"])
  );
  holder->erase(kQuantizationSection);
  return {std::move(config), std::move(warning)};
}

}  // namespace saker::load::importers
