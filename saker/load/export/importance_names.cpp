// SPDX-License-Identifier: Apache-2.0
#include "saker/load/export/importance_names.h"

#include "saker/base/error.h"
#include "saker/load/export/file_tensors.h"
#include "saker/models/tensor_roster.h"

#include <cstddef>
#include <set>
#include <span>
#include <utility>
#include <vector>

namespace saker::load::gguf {
namespace {

// mlx-lm's name of the module's weight.
std::string folder_weight(std::string_view module) {
  const std::string bare = models::roster_name(module);
  return (bare.starts_with("layers.") ? "model." + bare : bare) + ".weight";
}

// None if files of this architecture lack the tensor.
std::optional<FileTensor> found_tensor(
    const std::optional<ModelMetadata>& model, std::string_view name
) {
  try {
    return model ? file_tensor(*model, name) : std::nullopt;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kUnsupported) {
      throw;
    }
    return std::nullopt;
  }
}

}  // namespace

ImportanceNames::ImportanceNames(const Json& config) {
  try {
    model_ = model_metadata(config);
    const models::TensorRoster roster = models::tensor_roster(config);
    for (const auto& [name, module] : roster.modules()) {
      modules_.push_back(name);
    }
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kUnsupported) {
      throw;
    }
  }
}

NamedImportance ImportanceNames::place(std::string_view module, ImportanceEntry entry) const {
  std::string weight = folder_weight(module);
  const auto tensor = found_tensor(model_, weight);
  if (!tensor) {
    return {std::move(weight), std::move(entry)};
  }
  const ValueHeads& heads = tensor->role.columns;
  if (heads.moves() && heads.total() == static_cast<std::int64_t>(entry.sums.size())) {
    std::vector<std::byte> scratch;
    reversed(heads).move_columns(std::as_writable_bytes(std::span(entry.sums)), scratch);
  }
  return {tensor->name, std::move(entry)};
}

std::map<std::string, std::vector<float>, std::less<>> ImportanceNames::modules(
    const ImportanceFile& file
) const {
  constexpr std::string_view kWeight = ".weight";
  std::map<std::string, std::vector<float>, std::less<>> result;
  std::set<std::string_view> placed;
  for (const std::string& module : modules_) {
    const auto tensor = found_tensor(model_, folder_weight(module));
    const auto entry = tensor ? file.entries.find(tensor->name) : file.entries.end();
    if (entry == file.entries.end()) {
      continue;
    }
    std::vector<float> means = entry->second.means();
    const ValueHeads& heads = tensor->role.columns;
    if (heads.moves() && heads.total() == static_cast<std::int64_t>(means.size())) {
      std::vector<std::byte> scratch;
      heads.move_columns(std::as_writable_bytes(std::span(means)), scratch);
    }
    result.emplace(module, std::move(means));
    placed.insert(entry->first);
  }
  for (const auto& [name, entry] : file.entries) {
    const std::string_view path = name;
    if (path.ends_with(kWeight) && !placed.contains(path)) {
      result.emplace(
          models::roster_name(path.substr(0, path.size() - kWeight.size())), entry.means()
      );
    }
  }
  return result;
}

}  // namespace saker::load::gguf
