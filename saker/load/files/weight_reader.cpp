// SPDX-License-Identifier: Apache-2.0
#include "saker/base/error.h"
#include "saker/base/json/json.h"
#include "saker/base/mapped_file.h"
#include "saker/base/numbered_name.h"
#include "saker/base/utf8.h"
#include "saker/load/files/safetensors.h"
#include "saker/load/files/weight_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace saker::load {
namespace {

namespace fs = std::filesystem;

std::string_view leaf_of(std::string_view name) {
  return name.substr(name.rfind('.') + 1);
}

bool is_float(DType dtype) {
  return dtype == DType::kFloat32 || dtype == DType::kFloat16 || dtype == DType::kBFloat16 ||
         dtype == DType::kFloat64;
}

// Old exporters stored values that follow from the configuration.
bool is_derived(std::string_view name) {
  return name.ends_with("rotary_emb.inv_freq");
}

// Reads all files of a model, one after the other.
class Reader {
 public:
  explicit Reader(const WeightFiles& files) : files_(files) {}

  ModelTensors read() {
    for (const fs::path& path : files_.paths) {
      read_listed(path);
    }
    for (const auto& [name, places] : undecided_) {
      if (!result_.tensors.contains(name)) {
        take_undecided(name, places);
      }
    }
    const TensorMap listed = result_.tensors;
    for (const fs::path& path : files_.unlisted) {
      read_unlisted(path, listed);
    }
    for (const auto& [name, path] : files_.shard_of) {
      note_missing(name, path);
    }
    add_warnings();
    return std::move(result_);
  }

 private:
  struct Place {
    fs::path path;
    std::shared_ptr<const MappedFile> file;
    SafetensorsEntry entry;
  };

  void read_listed(const fs::path& path) {
    const auto file = MappedFile::open(path);
    for (SafetensorsEntry& entry : parse_safetensors(file->bytes(), quote_path(path)).entries) {
      const auto shard = files_.shard_of.find(entry.name);
      if (shard != files_.shard_of.end() && shard->second == path) {
        take({path, file, std::move(entry)});
      } else {
        std::string name = entry.name;
        undecided_[std::move(name)].push_back({path, file, std::move(entry)});
      }
    }
  }

  // Takes a tensor for which the index names no file or a wrong one.
  void take_undecided(const std::string& name, const std::vector<Place>& places) {
    if (places.size() > 1) {
      throw in_two_files(name, places[0].path, places[1].path);
    }
    take(places.front());
  }

  static Error in_two_files(const std::string& name, const fs::path& one, const fs::path& other) {
    return {
        ErrorCode::kCorruptData,
        fmt::format(
            "tensor {} is in both {} and {}", quote(name), quote_path(one), quote_path(other)
        )
    };
  }

  void take(const Place& place) {
    const std::string& name = place.entry.name;
    if (place.entry.dtype) {
      result_.tensors.emplace(name, map_tensor(place.file, place.entry));
      result_.file_of.emplace(name, place.path);
      return;
    }
    strange_.push_back(fmt::format("{} ({})", quote(name), place.entry.dtype_name));
    try {
      map_tensor(place.file, place.entry);
    } catch (const Error& error) {
      result_.errors.emplace(name, error);
    }
  }

  // Errors in an unlisted file are not fatal.
  void read_unlisted(const fs::path& path, const TensorMap& listed) {
    std::size_t taken = 0;
    try {
      const auto file = MappedFile::open(path);
      for (const SafetensorsEntry& entry :
           parse_safetensors(file->bytes(), quote_path(path)).entries) {
        if (result_.errors.contains(entry.name) || !completes(entry.name, listed)) {
          continue;
        }
        const auto [other, is_new] = unlisted_.emplace(entry.name, path);
        if (is_new) {
          take({path, file, entry});
          ++taken;
        } else {
          result_.tensors.erase(entry.name);
          result_.file_of.erase(entry.name);
          result_.errors.emplace(entry.name, in_two_files(entry.name, other->second, path));
        }
      }
    } catch (const Error& error) {
      result_.warnings.push_back(
          fmt::format("{} is in no index and is left out: {}", quote_path(path), error.what())
      );
      return;
    }
    if (taken > 0) {
      result_.warnings.push_back(fmt::format(
          "{} leaves out {}, which gives {} tensor{}",
          kIndexName,
          path.filename().native(),
          taken,
          taken == 1 ? "" : "s"
      ));
    }
  }

  // True if another file's tensor belongs to a module that the index's files lack, or have only in
  // part. The folder may also hold the same model in another form: beside a plain weight only a
  // bias is taken, beside codes only tensors that belong to them.
  static bool completes(const std::string& name, const TensorMap& listed) {
    if (listed.contains(name)) {
      return false;
    }
    const std::string_view leaf = leaf_of(name);
    const std::string module = name.substr(0, name.size() - leaf.size());
    for (const std::string_view main : {"weight", "qweight", "weight_packed"}) {
      const auto found = listed.find(fmt::format("{}{}", module, main));
      if (found != listed.end()) {
        const bool is_main = leaf == "weight" || leaf == "qweight" || leaf == "weight_packed";
        return leaf == "bias" || (!is_main && !is_float(found->second.dtype));
      }
    }
    return true;
  }

  void note_missing(const std::string& name, const fs::path& path) {
    if (result_.tensors.contains(name) || result_.errors.contains(name)) {
      return;
    }
    std::error_code ignored;
    const bool is_there = fs::exists(path, ignored);
    result_.errors.emplace(
        name,
        Error(
            ErrorCode::kNotFound,
            fmt::format(
                "tensor {} is missing: {} promises it in {}, which {}",
                quote(name),
                kIndexName,
                quote_path(path),
                is_there ? "lacks it" : "is not there"
            )
        )
    );
    if (is_there && !is_derived(name)) {
      missing_.push_back(quote(name));
    }
  }

  void add_warnings() {
    result_.warnings.insert(
        result_.warnings.begin(), files_.warnings.begin(), files_.warnings.end()
    );
    if (!missing_.empty()) {
      result_.warnings.push_back(
          fmt::format("{} promises tensors that are missing: {}", kIndexName, list_names(missing_))
      );
    }
    if (!strange_.empty()) {
      result_.warnings.push_back(fmt::format(
          "tensors of dtypes that can't be loaded are left out: {}", list_names(strange_)
      ));
    }
  }

  const WeightFiles& files_;
  ModelTensors result_;
  std::map<std::string, std::vector<Place>> undecided_;
  std::map<std::string, fs::path> unlisted_;  // The file that gives each of their tensors.
  std::vector<std::string> missing_;          // For warnings, as the next.
  std::vector<std::string> strange_;
};

// The layer in a name: "model.layers.3.mlp.up_proj.weight" is layer 3 and all the rest.
struct LayerName {
  std::int64_t layer = 0;
  std::string rest;
};

std::optional<LayerName> layer_name(std::string_view name) {
  constexpr std::string_view kLayers = "layers.";
  const auto at = name.find(kLayers);
  if (at == std::string_view::npos || (at > 0 && name[at - 1] != '.')) {
    return std::nullopt;
  }
  const auto numbered = numbered_name(name.substr(at), kLayers);
  return numbered ? std::optional(LayerName{
                        numbered->number, fmt::format("{}.{}", name.substr(0, at), numbered->rest)
                    })
                  : std::nullopt;
}

// True for the scopes of the text model.
bool is_of_body(std::string_view name, std::string_view rest) {
  constexpr std::array<std::string_view, 4> kScopes = {
      "model.", "language_model.model.", "model.language_model.", ""
  };
  return std::ranges::any_of(kScopes, [&](std::string_view scope) {
    return name.starts_with(scope) && name.substr(scope.size()).starts_with(rest);
  });
}

std::int64_t layer_count(const Json& config) {
  const auto text = config.is_object() ? config.find("text_config") : config.end();
  const Json& own = text != config.end() && text->is_object() ? *text : config;
  const auto count = own.is_object() ? own.find("num_hidden_layers") : own.end();
  return count != own.end() && count->is_number_integer() ? count->get<std::int64_t>() : 0;
}

}  // namespace

ModelTensors read_weight_files(const WeightFiles& files) {
  return Reader(files).read();
}

void check_layers(const ModelTensors& read, const Json& config) {
  const std::int64_t layers = layer_count(config);
  for (const auto& [name, error] : read.errors) {
    const auto place = layer_name(name);
    if (place && place->layer < layers && is_of_body(name, "layers.") && !is_derived(name)) {
      throw Error(error);
    }
  }
}

void check_complete(const ModelTensors& read, const Json& config) {
  const std::int64_t layers = layer_count(config);
  std::set<std::string> in_layers;
  for (const auto& [name, error] : read.errors) {
    if (error.code() != ErrorCode::kNotFound || is_derived(name)) {
      continue;
    }
    if (in_layers.empty()) {
      for (const auto& [other, tensor] : read.tensors) {
        if (auto place = layer_name(other)) {
          in_layers.insert(std::move(place->rest));
        }
      }
    }
    const auto place = layer_name(name);
    const bool needed =
        place ? place->layer < layers && is_of_body(name, "layers.") &&
                    in_layers.contains(place->rest)
              : is_of_body(name, "embed_tokens.weight") || is_of_body(name, "norm.weight");
    if (needed) {
      throw Error(error);
    }
  }
}

}  // namespace saker::load
