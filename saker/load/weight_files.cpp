// SPDX-License-Identifier: Apache-2.0
#include "saker/load/weight_files.h"

#include "saker/base/error.h"
#include "saker/base/json.h"
#include "saker/base/mapped_file.h"
#include "saker/base/numbered_name.h"
#include "saker/base/utf8.h"
#include "saker/load/safetensors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <ranges>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace saker::load {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kIndexName = "model.safetensors.index.json";
constexpr std::string_view kSuffix = ".safetensors";
constexpr std::string_view kDraftPrefix = "draft.";
// Names that a message lists at most.
constexpr std::size_t kListed = 3;

std::string list_names(const std::vector<std::string>& names) {
  const std::size_t shown = std::min(names.size(), kListed);
  std::string text = fmt::format("{}", fmt::join(names.begin(), names.begin() + shown, ", "));
  return shown == names.size() ? text : fmt::format("{} and {} more", text, names.size() - shown);
}

// Shards are plain files of the folder: a name that leads elsewhere could read anything on the
// machine.
bool is_plain_name(std::string_view name) {
  return !name.empty() && name.size() <= 255 && name != "." && name != ".." &&
         std::none_of(name.begin(), name.end(), [](unsigned char c) {
           return c == '/' || c == '\\' || c < 0x20 || c == 0x7f;
         });
}

std::map<std::string, fs::path, std::less<>> read_index(const fs::path& dir) {
  const fs::path path = dir / kIndexName;
  const Json index = read_json_file(path);
  const auto map = index.is_object() ? index.find("weight_map") : index.end();
  if (!index.is_object() || map == index.end() || !map->is_object() || map->empty()) {
    throw Error(
        ErrorCode::kCorruptData,
        fmt::format(
            "{}: 'weight_map' must be an object that names at least one tensor", quote_path(path)
        )
    );
  }
  std::map<std::string, fs::path, std::less<>> shard_of;
  for (const auto& [name, file] : map->items()) {
    if (!file.is_string() || !is_plain_name(file.get_ref<const std::string&>())) {
      throw Error(
          ErrorCode::kCorruptData,
          fmt::format(
              "{}: the shard of {} is {}, expected the name of a file in the same folder",
              quote_path(path),
              quote(name),
              describe_json(file)
          )
      );
    }
    shard_of.emplace(name, dir / file.get_ref<const std::string&>());
  }
  return shard_of;
}

std::vector<fs::path> glob_weights(const fs::path& dir) {
  std::vector<fs::path> found;
  std::error_code failed;
  for (fs::directory_iterator it(dir, failed), end; !failed && it != end; it.increment(failed)) {
    const std::string name = it->path().filename().native();
    if (name.starts_with("model") && name.ends_with(kSuffix)) {
      found.push_back(it->path());
    }
  }
  if (failed) {
    throw Error(
        ErrorCode::kNotFound,
        fmt::format("{}: cannot be listed: {}", quote_path(dir), failed.message())
    );
  }
  std::sort(found.begin(), found.end());
  return found;
}

// "model-00001-of-00003.safetensors" promises three files: those of the set that are not in
// `found`.
std::vector<std::string> missing_siblings(const std::vector<fs::path>& found) {
  std::set<std::string> names;
  for (const fs::path& path : found) {
    names.insert(path.filename().native());
  }
  std::set<std::string> missing;
  for (const std::string& name : names) {
    const auto part = part_name(name, kSuffix);
    for (int i = 1; part && i <= part->count; ++i) {
      std::string sibling = part->sibling(i);
      if (!names.contains(sibling)) {
        missing.insert(std::move(sibling));
      }
    }
  }
  return {missing.begin(), missing.end()};
}

WeightFiles without_index(const fs::path& dir) {
  WeightFiles files{.paths = glob_weights(dir), .shard_of = {}, .warnings = {}};
  require(
      !files.paths.empty(), ErrorCode::kNotFound, "{}: holds no model*.safetensors", quote_path(dir)
  );
  const std::vector<std::string> missing = missing_siblings(files.paths);
  require(
      missing.empty(),
      ErrorCode::kNotFound,
      "{}: weights are missing: {}",
      quote_path(dir),
      list_names(missing)
  );
  return files;
}

bool has_weights(const fs::path& dir) {
  std::error_code failed;
  if (fs::exists(dir / kIndexName, failed)) {
    return true;
  }
  return fs::is_directory(dir, failed) && !glob_weights(dir).empty();
}

}  // namespace

WeightFiles find_weight_files(const fs::path& dir) {
  std::error_code ignored;
  if (!fs::exists(dir / kIndexName, ignored)) {
    return without_index(dir);
  }
  WeightFiles files;
  files.shard_of = read_index(dir);
  std::set<fs::path> shards;
  for (const auto& [name, path] : files.shard_of) {
    shards.insert(path);
  }
  std::vector<std::string> missing;
  for (const fs::path& path : shards) {
    if (!fs::exists(path, ignored)) {
      missing.push_back(path.filename().native());
    }
  }
  // Converters leave the index of the original beside the one file that they write.
  if (missing.size() == shards.size() && fs::exists(dir / "model.safetensors", ignored)) {
    WeightFiles whole = without_index(dir);
    whole.warnings.push_back(
        fmt::format("{} names none of the files that are there and is ignored", kIndexName)
    );
    return whole;
  }
  require(
      missing.empty(),
      ErrorCode::kNotFound,
      "{}: weights that {} names are missing: {}",
      quote_path(dir),
      kIndexName,
      list_names(missing)
  );
  files.paths.assign(shards.begin(), shards.end());
  return files;
}

TensorMap read_weight_files(const WeightFiles& files) {
  TensorMap tensors;
  std::map<std::string, std::size_t, std::less<>> file_of;
  for (std::size_t i = 0; i < files.paths.size(); ++i) {
    const fs::path& path = files.paths[i];
    const auto file = MappedFile::open(path);
    const SafetensorsHeader header = parse_safetensors(file->bytes(), quote_path(path));
    for (const SafetensorsEntry& entry : header.entries) {
      const auto shard = files.shard_of.find(entry.name);
      if (shard != files.shard_of.end() && shard->second != path) {
        continue;  // The index takes this tensor from another file.
      }
      const auto [other, is_new] = file_of.emplace(entry.name, i);
      if (!is_new) {
        throw Error(
            ErrorCode::kCorruptData,
            fmt::format(
                "tensor {} is in both {} and {}",
                quote(entry.name),
                quote_path(files.paths[other->second]),
                quote_path(path)
            )
        );
      }
      tensors.emplace(entry.name, map_tensor(file, entry));
    }
  }
  for (const auto& [name, path] : files.shard_of) {
    if (!tensors.contains(name)) {
      throw Error(
          ErrorCode::kCorruptData,
          fmt::format(
              "{}: tensor {} is missing, which {} promises",
              quote_path(path),
              quote(name),
              kIndexName
          )
      );
    }
  }
  return tensors;
}

bool is_of_draft(std::string_view tensor) {
  return tensor.starts_with(kDraftPrefix);
}

ModelTensors read_model_tensors(const fs::path& dir) {
  // "model/draft/" and "." have names too.
  const fs::path folder = fs::absolute(dir / "").lexically_normal().parent_path();
  const bool is_draft = folder.filename() == "draft" && !has_weights(dir);
  if (is_draft && has_weights(folder.parent_path())) {
    WeightFiles files = find_weight_files(folder.parent_path());
    TensorMap drafts;
    for (auto& [name, tensor] : read_weight_files(files)) {
      if (is_of_draft(name)) {
        drafts.emplace(name.substr(kDraftPrefix.size()), tensor);
      }
    }
    if (!drafts.empty()) {
      return {std::move(drafts), std::move(files.warnings)};
    }
  }
  WeightFiles files = find_weight_files(dir);
  ModelTensors result{read_weight_files(files), std::move(files.warnings)};
  std::erase_if(result.tensors, [](const auto& tensor) { return is_of_draft(tensor.first); });
  return result;
}

std::vector<std::string> tensor_names(const TensorMap& tensors) {
  const auto names = std::views::keys(tensors);
  return {names.begin(), names.end()};
}

}  // namespace saker::load
