// SPDX-License-Identifier: Apache-2.0
#include "saker/adapters/adapter_cache.h"

#include "saker/adapters/adapter_source.h"
#include "saker/base/blake2b.h"
#include "saker/base/error.h"
#include "saker/base/file_lock.h"
#include "saker/base/files/atomic_file.h"
#include "saker/base/files/atomic_folder.h"
#include "saker/base/mapped_file.h"
#include "saker/load/files/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <system_error>
#include <utility>

namespace saker::adapters {
namespace {

namespace fs = std::filesystem;

// In our own cache the report lies beside mlx-lm's two files.
constexpr std::string_view kReport = "conversion.json";
// Version of the conversion's output; folders of another version are converted again.
constexpr int kForm = 2;

fs::path cache_home() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && *cache != '\0') {
    return cache;
  }
  const char* home = std::getenv("HOME");
  require(
      home != nullptr && *home != '\0',
      ErrorCode::kInvalidArgument,
      "there is no place for a cache: neither XDG_CACHE_HOME nor HOME is set"
  );
  return fs::path(home) / ".cache";
}

// The cache's root folder; creates it.
fs::path cache_root(std::string_view name) {
  fs::path root = cache_home() / name;
  std::error_code failed;
  fs::create_directories(root, failed);
  require(!failed, ErrorCode::kNotFound, "{}: can't be made: {}", root.string(), failed.message());
  return root;
}

bool has_both(const fs::path& dir) {
  std::error_code ignored;
  return fs::exists(dir / kMlxWeights, ignored) && fs::exists(dir / kAdapterConfig, ignored);
}

Json report_json(const ConversionReport& report) {
  return {
      {"form", kForm},
      {"tensors", report.tensors},
      {"converted", report.converted},
      {"skipped", report.skipped},
      {"notes", report.notes},
  };
}

// The report of a folder of ours; empty if it is missing, incomplete or of another version.
std::optional<ConversionReport> read_report(const fs::path& dir) {
  if (!has_both(dir)) {
    return std::nullopt;
  }
  try {
    const Json json = read_json_file(dir / kReport);
    const auto tensors = json.at("tensors").get<std::size_t>();
    const bool whole = json.at("form").get<int>() == kForm &&
                       load::read_safetensors(dir / kMlxWeights).size() == tensors;
    if (!whole) {
      return std::nullopt;
    }
    return ConversionReport{
        .converted = json.at("converted").get<std::vector<std::string>>(),
        .skipped = json.at("skipped").get<std::vector<std::string>>(),
        .notes = json.at("notes").get<std::vector<std::string>>(),
        .tensors = tensors,
    };
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

// Equal numbers may differ by their rounding to float32.
bool same_json(const Json& one, const Json& other) {
  constexpr double kRounding = 1e-6;
  if (one.is_number() && other.is_number()) {
    const auto a = one.get<double>();
    const auto b = other.get<double>();
    return std::abs(a - b) <= kRounding * std::max(std::abs(a), std::abs(b));
  }
  if (one.is_object() && other.is_object()) {
    return one.size() == other.size() && std::ranges::all_of(one.items(), [&](const auto& item) {
             return other.contains(item.key()) && same_json(item.value(), other[item.key()]);
           });
  }
  if (one.is_array() && other.is_array()) {
    return std::ranges::equal(one, other, same_json);
  }
  return one == other;
}

bool same_tensor(const Tensor& one, const Tensor& other) {
  return one.dtype == other.dtype && one.shape == other.shape &&
         std::ranges::equal(one.bytes(), other.bytes());
}

// True if a folder holds exactly what write_mlx would write.
bool holds(const fs::path& dir, const MlxAdapter& adapter) {
  if (!has_both(dir)) {
    return false;
  }
  try {
    const load::TensorMap tensors = load::read_safetensors(dir / kMlxWeights);
    return same_json(read_json_file(dir / kAdapterConfig), adapter.config) &&
           tensors.size() == adapter.tensors.size() &&
           std::ranges::all_of(adapter.tensors, [&](const auto& entry) {
             const auto found = tensors.find(entry.first);
             return found != tensors.end() && same_tensor(found->second, entry.second);
           });
  } catch (const Error&) {
    return false;  // A broken folder is written again.
  }
}

void write(const fs::path& dir, const MlxAdapter& adapter, AdapterCache cache) {
  std::error_code ignored;
  fs::remove_all(dir, ignored);  // It is broken, or of another configuration.
  AtomicFolder folder(dir);
  write_mlx(adapter, folder.path());
  if (cache == AdapterCache::kSaker) {
    AtomicFile file(folder.path() / kReport);
    file.write(report_json(adapter.report).dump(2) + "\n");
    file.commit();
  }
  folder.commit();
}

}  // namespace

std::string adapter_cache_key(const fs::path& dir, AdapterCache cache) {
  Blake2b hash;
  if (load::is_gguf_file(dir)) {
    hash.add(MappedFile::open(dir)->bytes());
    return hash.hex();
  }
  const auto weights = load::find_adapter_weights(dir);
  hash.add(MappedFile::open(dir / (weights ? weights->file : kPeftWeights))->bytes());
  if (cache == AdapterCache::kSaker) {
    hash.add(MappedFile::open(dir / kAdapterConfig)->bytes());
  }
  return hash.hex();
}

CachedAdapter cached_adapter(const fs::path& name, AdapterCache cache) {
  const fs::path dir = load::lone_gguf_file(name).value_or(name);
  const bool is_file = load::is_gguf_file(dir);
  const auto weights = is_file ? std::nullopt : load::find_adapter_weights(dir);
  if (!weights && !is_file) {
    read_adapter(dir);  // Reports the error.
  } else if (weights && weights->file == kMlxWeights && weights->form == AdapterFormat::kMlx) {
    return {.dir = dir, .was_there = true, .report = {}};
  }
  const std::string key = adapter_cache_key(dir, cache);
  const fs::path own = cache_root("saker/adapters");
  const fs::path folder =
      (cache == AdapterCache::kSaker ? own : cache_root("dlm-sway/mlx-converted")) / key;
  const FileLock lock(own / ("." + key + ".lock"));
  if (cache == AdapterCache::kSaker) {
    if (auto report = read_report(folder)) {
      return {.dir = folder, .was_there = true, .report = std::move(*report)};
    }
  }
  MlxAdapter adapter = to_mlx(read_adapter(dir));
  const bool was_there = cache == AdapterCache::kSway && holds(folder, adapter);
  require(
      adapter_cache_key(dir, cache) == key,
      ErrorCode::kInvalidArgument,
      "{}: the adapter changed while it was read",
      dir.string()
  );
  if (!was_there) {
    write(folder, adapter, cache);
  }
  return {.dir = folder, .was_there = was_there, .report = std::move(adapter.report)};
}

}  // namespace saker::adapters
