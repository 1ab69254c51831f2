// SPDX-License-Identifier: Apache-2.0
#include "saker/load/inspect/tensor_headers.h"

#include "saker/load/files/npz.h"

#include <cstddef>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

namespace saker::load {
namespace {

// Bits of a module's packed weight; empty if it is not quantized.
std::optional<int> packed_bits(
    const nn::QuantizationConfig& quantization, std::string_view module
) {
  const auto found = quantization.overrides.find(module);
  const auto& format = found != quantization.overrides.end() ? found->second : quantization.format;
  return format ? std::optional(format->bits) : std::nullopt;
}

}  // namespace

void add_file(Inspection& result, Headers& headers, const std::filesystem::path& path) {
  SafetensorsHeader header = read_safetensors_header(path);
  std::error_code ignored;
  result.file_bytes += std::filesystem::file_size(path, ignored);
  result.files.push_back(path);
  result.metadata = std::move(header.metadata);
  for (SafetensorsEntry& entry : header.entries) {
    std::string name = entry.name;
    headers.insert_or_assign(std::move(name), std::move(entry));
  }
}

void add_npz(Inspection& result, Headers& headers, const std::filesystem::path& path) {
  std::error_code ignored;
  result.file_bytes += std::filesystem::file_size(path, ignored);
  result.files.push_back(path);
  for (const auto& [name, tensor] : read_npz(path)) {
    SafetensorsEntry entry;
    entry.name = name;
    entry.dtype_name = dtype_name(tensor.dtype);
    entry.dtype = tensor.dtype;
    entry.shape = tensor.shape;
    entry.element_count = tensor.element_count();
    entry.end = tensor.nbytes();
    headers.insert_or_assign(name, std::move(entry));
  }
}

void add_totals(Inspection& result, const Headers& headers) {
  for (const auto& [name, entry] : headers) {
    DTypeTotal& total = result.dtypes[std::string(entry.dtype_name)];
    total.tensors += 1;
    total.elements += entry.element_count;
    total.bytes += entry.end - entry.begin;
    result.tensors.push_back({name, std::string(entry.dtype_name), entry.shape});
  }
}

Headers lazy_headers(const importers::ImportedModel& model) {
  Headers headers;
  for (const PlannedTensor& output : importers::all_outputs(model)) {
    SafetensorsEntry entry;
    entry.name = output.name;
    entry.dtype_name = dtype_name(output.dtype);
    entry.dtype = output.dtype;
    entry.shape = output.shape;
    entry.element_count = static_cast<std::int64_t>(output.nbytes() / dtype_size(output.dtype));
    entry.end = output.nbytes();
    headers.emplace(output.name, std::move(entry));
  }
  return headers;
}

std::int64_t count_parameters(
    const Headers& headers,
    const nn::QuantizationConfig& quantization,
    const std::optional<models::TensorRoster>& roster
) {
  constexpr std::string_view kWeight = ".weight";
  constexpr std::string_view kScales = ".scales";
  constexpr std::string_view kBiases = ".biases";
  std::int64_t count = 0;
  for (const auto& [name, entry] : headers) {
    const std::string_view view = name;
    const auto module_of = [&](std::string_view suffix) {
      return std::string(view.substr(0, view.size() - suffix.size()));
    };
    if (view.ends_with(kScales) || view.ends_with(kBiases)) {
      const std::string module = module_of(kScales);  // Both suffixes have one length.
      if (headers.contains(module + ".weight") && headers.contains(module + ".scales")) {
        continue;
      }
    }
    std::int64_t elements = entry.element_count;
    if (view.ends_with(kWeight) && entry.dtype == DType::kUInt32) {
      const std::string module = module_of(kWeight);
      const auto columns = roster ? roster->columns(module) : std::nullopt;
      const auto bits = packed_bits(quantization, module);
      if (columns && entry.shape.size() > 1 && entry.shape.back() > 0) {
        elements = elements / entry.shape.back() * *columns;
      } else if (bits && headers.contains(module + ".scales")) {
        elements = static_cast<std::int64_t>(static_cast<double>(elements) * 32.0 / *bits);
      }
    }
    count += elements;
  }
  return count;
}

}  // namespace saker::load
