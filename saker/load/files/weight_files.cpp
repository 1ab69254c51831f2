// SPDX-License-Identifier: Apache-2.0
#include "saker/load/files/weight_files.h"

#include "saker/base/error.h"
#include "saker/base/json/json.h"
#include "saker/base/numbered_name.h"
#include "saker/base/utf8.h"
#include "saker/load/files/safetensors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <iterator>
#include <map>
#include <ranges>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace saker::load {
namespace {

namespace fs = std::filesystem;

// A message lists at most this many names.
constexpr std::size_t kListed = 3;
constexpr std::string_view kSuffix = ".safetensors";
constexpr std::string_view kDraftPrefix = "draft.";

// Shards must be plain names in the folder: a path could read any file of the machine.
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

// The promised files that are not in `found`: "model-00001-of-00003.safetensors" promises three.
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

// Advice about weights in files that we don't read; empty if there are none.
std::string what_else(const fs::path& dir) {
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(dir, failed)) {
    const std::string name = entry.path().filename().string();
    if (entry.path().extension() == ".gguf") {
      return fmt::format(", but {}: give this file itself as the model", quote(name));
    }
    if (entry.path().extension() == ".bin" && name.starts_with("pytorch_model")) {
      return fmt::format(
          ", but {}, which may run code when it is read: transformers' save_pretrained writes "
          "safetensors of it",
          quote(name)
      );
    }
  }
  return {};
}

WeightFiles without_index(const fs::path& dir) {
  WeightFiles files{.paths = glob_weights(dir), .shard_of = {}, .unlisted = {}, .warnings = {}};
  require(
      !files.paths.empty(),
      ErrorCode::kNotFound,
      "{}: holds no model*.safetensors{}",
      quote_path(dir),
      what_else(dir)
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

std::vector<std::string> file_names(const std::vector<fs::path>& paths) {
  std::vector<std::string> names;
  names.reserve(paths.size());
  for (const fs::path& path : paths) {
    names.push_back(path.filename().native());
  }
  return names;
}

// The entries with the draft's prefix, without that prefix.
template <typename Map>
Map without_prefix(const Map& all) {
  Map result;
  for (const auto& [name, value] : all) {
    if (name.starts_with(kDraftPrefix)) {
      result.emplace(name.substr(kDraftPrefix.size()), value);
    }
  }
  return result;
}

// The files of a folder whose index is useless; `reason` says why.
WeightFiles beside_index(const fs::path& dir, std::string_view reason) {
  WeightFiles files = without_index(dir);
  files.warnings.push_back(fmt::format("{} {} and is ignored", kIndexName, reason));
  return files;
}

}  // namespace

std::string list_names(const std::vector<std::string>& names) {
  const std::size_t shown = std::min(names.size(), kListed);
  std::string text = fmt::format("{}", fmt::join(std::span(names).first(shown), ", "));
  return shown == names.size() ? text : fmt::format("{} and {} more", text, names.size() - shown);
}

WeightFiles find_weight_files(const fs::path& dir) {
  std::error_code ignored;
  if (!fs::exists(dir / kIndexName, ignored)) {
    return without_index(dir);
  }
  const std::vector<fs::path> all = glob_weights(dir);
  WeightFiles files;
  try {
    files.shard_of = read_index(dir);
  } catch (const Error& error) {
    if (all.empty()) {
      throw;
    }
    return beside_index(dir, fmt::format("is broken ({})", error.what()));
  }
  std::set<fs::path> shards;
  for (const auto& [name, path] : files.shard_of) {
    shards.insert(path);
  }
  std::vector<fs::path> missing;
  for (const fs::path& path : shards) {
    (fs::exists(path, ignored) ? files.paths : missing).push_back(path);
  }
  // Converters copy the original's index beside the files that they write.
  if (files.paths.empty() && !all.empty()) {
    return beside_index(dir, "names none of the files that are there");
  }
  require(
      !files.paths.empty(),
      ErrorCode::kNotFound,
      "{}: weights that {} names are missing: {}",
      quote_path(dir),
      kIndexName,
      list_names(file_names(missing))
  );
  if (!missing.empty()) {
    files.warnings.push_back(fmt::format(
        "{} names files that are not there: {}", kIndexName, list_names(file_names(missing))
    ));
  }
  std::ranges::copy_if(all, std::back_inserter(files.unlisted), [&](const fs::path& path) {
    return !shards.contains(path);
  });
  return files;
}

bool is_of_draft(std::string_view tensor) {
  return tensor.starts_with(kDraftPrefix);
}

ModelTensors read_model_tensors(const fs::path& dir) {
  // "model/draft/" and "." have names too.
  const fs::path folder = fs::absolute(dir / "").lexically_normal().parent_path();
  const bool is_draft = folder.filename() == "draft" && !has_weights(dir);
  if (is_draft && has_weights(folder.parent_path())) {
    ModelTensors all = read_weight_files(find_weight_files(folder.parent_path()));
    ModelTensors drafts{
        .tensors = without_prefix(all.tensors),
        .file_of = without_prefix(all.file_of),
        .errors = without_prefix(all.errors),
        .warnings = std::move(all.warnings),
    };
    if (!drafts.tensors.empty()) {
      return drafts;
    }
  }
  ModelTensors result = read_weight_files(find_weight_files(dir));
  const auto of_draft = [](const auto& entry) { return is_of_draft(entry.first); };
  std::erase_if(result.tensors, of_draft);
  std::erase_if(result.file_of, of_draft);
  std::erase_if(result.errors, of_draft);
  return result;
}

std::vector<std::string> tensor_names(const TensorMap& tensors) {
  const auto names = std::views::keys(tensors);
  return {names.begin(), names.end()};
}

}  // namespace saker::load
