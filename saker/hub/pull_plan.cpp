// SPDX-License-Identifier: Apache-2.0
#include "saker/hub/pull_plan.h"

#include "saker/base/error.h"
#include "saker/base/json/json.h"
#include "saker/base/utf8.h"
#include "saker/hub/gguf_choice.h"
#include "saker/hub/remote_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <ranges>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace saker::hub {
namespace {

constexpr std::string_view kIndex = "model.safetensors.index.json";
constexpr std::string_view kWeights = "model.safetensors";
constexpr std::string_view kSuffix = ".safetensors";
// A message lists at most this many names.
constexpr std::size_t kListed = 5;

constexpr std::array<std::string_view, 19> kSmallFiles{
    "adapter_config.json",
    "added_tokens.json",
    "chat_template.jinja",
    "chat_template.json",
    "config.json",
    "config_sentence_transformers.json",
    "generation_config.json",
    "merges.txt",
    kIndex,
    "modules.json",
    "preprocessor_config.json",
    "processor_config.json",
    "special_tokens_map.json",
    "tiktoken.model",
    "tokenizer.json",
    "tokenizer.model",
    "tokenizer_config.json",
    "vocab.json",
    "vocab.txt",
};
constexpr std::array<std::string_view, 3> kAdapterWeights{
    "adapter_model.safetensors",
    "adapters.npz",
    "adapters.safetensors",
};

template <typename Names>
bool holds(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// "draft/config.json" is {"draft/", "config.json"}.
struct Place {
  std::string_view folder;
  std::string_view name;
};

Place place_of(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? Place{"", path}
                                         : Place{path.substr(0, slash + 1), path.substr(slash + 1)};
}

// True for folders that may hold a model or an adapter of their own.
bool is_model_folder(std::string_view folder) {
  constexpr std::string_view kAdapters = "adapters/";
  return folder.empty() || folder == "draft/" || folder == "adapter/" || folder == kAdapters ||
         (folder.starts_with(kAdapters) && std::count(folder.begin(), folder.end(), '/') == 2);
}

std::set<std::string_view> model_folders(std::span<const RemoteFile> files) {
  std::set<std::string_view> folders;
  for (const RemoteFile& file : files) {
    const Place place = place_of(file.path);
    const bool describes = place.name == "config.json" || place.name == "adapter_config.json";
    if (place.folder.empty() || (describes && is_model_folder(place.folder))) {
      folders.insert(place.folder);
    }
  }
  return folders;
}

const RemoteFile* find(std::span<const RemoteFile> files, const std::string& path) {
  const auto found =
      std::lower_bound(files.begin(), files.end(), path, [](const RemoteFile& a, const auto& b) {
        return a.path < b;
      });
  return found != files.end() && found->path == path ? &*found : nullptr;
}

bool is_loose_weight(std::string_view name) {
  return name.starts_with("model") && name.ends_with(kSuffix);
}

bool is_template(const Place& place) {
  return place.folder == "additional_chat_templates/" && place.name.ends_with(".jinja");
}

// A file of a module of sentence-transformers beside the model, as "2_Dense/model.safetensors".
bool is_module(const Place& place) {
  constexpr std::string_view kDigits = "0123456789";
  const bool is_numbered = place.folder.find_first_not_of(kDigits) == place.folder.find('_') &&
                           !place.folder.empty() && place.folder.front() != '_' &&
                           place.folder.find('_') != std::string_view::npos &&
                           std::count(place.folder.begin(), place.folder.end(), '/') == 1;
  return is_numbered && (place.name == "config.json" || place.name == kWeights);
}

bool is_wanted(const RemoteFile& file, std::span<const std::string> patterns) {
  return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
    return ::fnmatch(pattern.c_str(), file.path.c_str(), 0) == 0;
  });
}

// The files that an index of `folder` names.
std::set<std::string> indexed_files(
    const RemoteFile& index, std::string_view folder, const ReadIndex& read_index
) {
  const Json json = parse_json(read_index(index), index.path);
  const auto map = json.is_object() ? json.find("weight_map") : json.end();
  require(
      json.is_object() && map != json.end() && map->is_object() && !map->empty(),
      ErrorCode::kCorruptData,
      "{}: 'weight_map' must be an object that names at least one tensor",
      index.path
  );
  std::set<std::string> names;
  for (const auto& [tensor, name] : map->items()) {
    require(
        name.is_string(),
        ErrorCode::kCorruptData,
        "{}: the file of {} is {}, expected a name",
        index.path,
        quote(tensor),
        describe_json(name)
    );
    names.insert(std::string(folder) + name.get<std::string>());
  }
  return names;
}

// Adds loose weights if there is no index: one whole file, else its pieces.
void add_loose(
    std::span<const RemoteFile> files, std::string_view folder, std::vector<RemoteFile>& chosen
) {
  if (const RemoteFile* whole = find(files, std::string(folder) + std::string(kWeights))) {
    chosen.push_back(*whole);
    return;
  }
  for (const RemoteFile& file : files) {
    const Place place = place_of(file.path);
    if (place.folder == folder && is_loose_weight(place.name)) {
      chosen.push_back(file);
    }
  }
}

// The files that an index names. An index that names missing files was left by another model: then
// loose weights are added, as they are if it is broken.
std::vector<RemoteFile> named_files(
    const RemoteFile& index,
    std::span<const RemoteFile> files,
    std::string_view folder,
    const ReadIndex& read_index
) {
  std::map<std::string, RemoteFile> chosen;
  bool fits = true;
  try {
    for (const std::string& path : indexed_files(index, folder, read_index)) {
      const RemoteFile* file = find(files, path);
      fits = fits && file != nullptr;
      if (file != nullptr) {
        chosen.emplace(path, *file);
      }
    }
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kCorruptData) {
      throw;
    }
    fits = false;
  }
  if (!fits) {
    std::vector<RemoteFile> loose;
    add_loose(files, folder, loose);
    for (const RemoteFile& file : loose) {
      chosen.emplace(file.path, file);
    }
  }
  require(
      !chosen.empty(),
      ErrorCode::kCorruptData,
      "{} is broken, or names no file that the model holds",
      index.path
  );
  const auto taken = std::views::values(chosen);
  return {taken.begin(), taken.end()};
}

bool has_weights(std::span<const RemoteFile> files) {
  return std::any_of(files.begin(), files.end(), [](const RemoteFile& file) {
    const Place place = place_of(file.path);
    return is_model_folder(place.folder) &&
           (is_loose_weight(place.name) || holds(kAdapterWeights, place.name) ||
            place.name == kIndex);
  });
}

void require_something(std::span<const RemoteFile> files, bool has_wanted) {
  if (has_weights(files) || has_wanted) {
    return;
  }
  std::vector<std::string> names;
  for (const RemoteFile& file : files.first(std::min(files.size(), kListed))) {
    names.push_back(quote(file.path));
  }
  const bool has_pickles = std::ranges::any_of(files, [](const RemoteFile& file) {
    return file.path.ends_with(".bin") || file.path.ends_with(".pth");
  });
  throw Error(
      ErrorCode::kUnsupported,
      fmt::format(
          "holds no model*.safetensors, but {} files: {}{}; {}--include PATTERN takes files by "
          "name",
          files.size(),
          fmt::join(names, ", "),
          files.size() > kListed ? ", ..." : "",
          has_pickles
              ? "pickles (*.bin, *.pth) can run code and are never read, look for the model "
                "in safetensors or GGUF; "
              : ""
      )
  );
}

}  // namespace

std::vector<RemoteFile> choose_small_files(
    std::span<const RemoteFile> files, std::span<const std::string> patterns
) {
  const auto folders = model_folders(files);
  std::vector<RemoteFile> chosen;
  bool has_wanted = false;
  for (const RemoteFile& file : files) {
    const Place place = place_of(file.path);
    const bool wanted = is_wanted(file, patterns);
    has_wanted = has_wanted || wanted;
    const bool small = folders.contains(place.folder) &&
                       (holds(kSmallFiles, place.name) || place.name.ends_with(".tiktoken"));
    if (wanted || small || is_template(place) || is_module(place)) {
      chosen.push_back(file);
    }
  }
  require_something(files, has_wanted);
  return chosen;
}

GgufFiles choose_gguf_files(
    std::span<const RemoteFile> files,
    std::span<const std::string> patterns,
    std::string_view wanted,
    std::string_view what
) {
  if (wanted.empty() && (!patterns.empty() || has_weights(files))) {
    return {};
  }
  std::vector<std::string> paths;
  for (const RemoteFile& file : files) {
    paths.push_back(file.path);
  }
  const auto models = gguf_models(paths);
  if (wanted.empty() && models.empty()) {
    return {};
  }
  const GgufModel& model = choose_gguf(models, wanted, what);
  GgufFiles chosen{.path = model.path, .files = {}};
  for (const RemoteFile& file : files) {
    if (holds(model.paths, file.path) || is_wanted(file, patterns)) {
      chosen.files.push_back(file);
    }
  }
  return chosen;
}

bool is_index(const RemoteFile& file) {
  return place_of(file.path).name == kIndex;
}

std::vector<RemoteFile> choose_weights(
    std::span<const RemoteFile> files, const ReadIndex& read_index
) {
  std::vector<RemoteFile> chosen;
  for (const std::string_view folder : model_folders(files)) {
    for (const std::string_view name : kAdapterWeights) {
      if (const RemoteFile* file = find(files, std::string(folder) + std::string(name))) {
        chosen.push_back(*file);
      }
    }
    const RemoteFile* index = find(files, std::string(folder) + std::string(kIndex));
    if (index == nullptr) {
      add_loose(files, folder, chosen);
      continue;
    }
    const auto named = named_files(*index, files, folder, read_index);
    chosen.insert(chosen.end(), named.begin(), named.end());
  }
  return chosen;
}

PullChoice choose_files(
    std::span<const RemoteFile> files, const ModelName& name, std::span<const std::string> patterns
) {
  GgufFiles gguf = choose_gguf_files(files, patterns, name.file, to_string(name));
  if (!gguf.path.empty()) {
    return {.files = std::move(gguf.files), .gguf = std::move(gguf.path)};
  }
  try {
    return {.files = choose_small_files(files, patterns), .gguf = {}};
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{} {}", to_string(name), error.what()));
  }
}

}  // namespace saker::hub
