// SPDX-License-Identifier: Apache-2.0
#include "saker/load/importers/sentence_transformers.h"

#include "saker/base/error.h"
#include "saker/base/utf8.h"
#include "saker/load/files/safetensors.h"
#include "saker/models/embedding_config.h"

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace saker::load::importers {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kModules = "modules.json";
constexpr std::string_view kTransformerFile = "sentence_bert_config.json";
constexpr std::size_t kMaxModules = 32;
constexpr std::int64_t kMaxTokens = std::int64_t{1} << 40;

struct PoolingMode {
  std::string_view key;   // A flag of older files.
  std::string_view name;  // The value of `pooling_mode` in newer ones.
  std::string_view ours;  // Empty: cannot be run.
};

constexpr std::array kModes{
    PoolingMode{"pooling_mode_cls_token", "cls", "cls"},
    PoolingMode{"pooling_mode_mean_tokens", "mean", "mean"},
    PoolingMode{"pooling_mode_lasttoken", "lasttoken", "last"},
    PoolingMode{"pooling_mode_max_tokens", "max", ""},
    PoolingMode{"pooling_mode_mean_sqrt_len_tokens", "mean_sqrt_len_tokens", ""},
    PoolingMode{"pooling_mode_weightedmean_tokens", "weightedmean", ""},
};

// The names of the modes that a file sets.
std::vector<std::string> modes_of(const Json& file) {
  std::vector<std::string> set;
  if (const auto mode = file.find("pooling_mode"); mode != file.end()) {
    for (const Json& name : mode->is_array() ? *mode : Json::array({*mode})) {
      set.push_back(name.is_string() ? name.get<std::string>() : std::string());
    }
    return set;
  }
  for (const PoolingMode& mode : kModes) {
    if (json_bool(file, mode.key, false)) {
      set.emplace_back(mode.name);
    }
  }
  return set;
}

std::string_view read_pooling(const Json& file, const fs::path& path) {
  const std::vector<std::string> modes = modes_of(file);
  require(
      json_bool(file, "include_prompt", true),
      ErrorCode::kUnsupported,
      "{}: include_prompt is false, only true can be run",
      quote_path(path)
  );
  for (const PoolingMode& mode : kModes) {
    if (modes.size() == 1 && modes.front() == mode.name && !mode.ours.empty()) {
      return mode.ours;
    }
  }
  std::string got;
  for (const std::string& mode : modes) {
    got += (got.empty() ? "" : " and ") + quote(mode);
  }
  throw Error(
      ErrorCode::kUnsupported,
      fmt::format(
          "{}: the pooling is {}, expected one of cls, mean and lasttoken",
          quote_path(path),
          got.empty() ? "missing" : got
      )
  );
}

std::string_view read_activation(const Json& file, const fs::path& path) {
  const std::string full =
      json_string(file, "activation_function", "torch.nn.modules.activation.Tanh");
  const std::string name = full.substr(full.rfind('.') + 1);
  require(
      name == "Identity" || name == "Tanh",
      ErrorCode::kUnsupported,
      "{}: activation_function is {}, expected Identity or Tanh",
      quote_path(path),
      quote(full)
  );
  return name == "Tanh" ? "tanh" : "identity";
}

// A member that bounds a text's tokens; 0: none, such as the huge number that stands for none.
std::int64_t bound_of(const Json& file, std::string_view key) {
  const auto found = file.is_object() ? file.find(key) : file.end();
  const bool is_bound = found != file.end() && found->is_number() && *found <= kMaxTokens;
  return is_bound ? json_int_in(file, key, 1, kMaxTokens) : 0;
}

// Tokens of a text that the Transformer module reads, by its own file or by the tokenizer's; 0: as
// many as the model takes.
std::int64_t read_max_tokens(const fs::path& folder) {
  const auto read = [&](std::string_view name) {
    std::error_code ignored;
    return fs::exists(folder / name, ignored) ? read_json_file(folder / name) : Json::object();
  };
  const Json file = read(kTransformerFile);
  require(
      !json_bool(file, "do_lower_case", false),
      ErrorCode::kUnsupported,
      "{}: do_lower_case is true, only false can be run",
      quote_path(folder / kTransformerFile)
  );
  const std::int64_t own = bound_of(file, "max_seq_length");
  return own > 0 ? own : bound_of(read("tokenizer_config.json"), "model_max_length");
}

// Reads modules in their order.
class ModuleReader {
 public:
  explicit ModuleReader(const fs::path& dir) : dir_(dir) {}

  void read() {
    const fs::path path = dir_ / kModules;
    const Json modules = read_json_file(path);
    require(
        modules.is_array() && modules.size() <= kMaxModules,
        ErrorCode::kCorruptData,
        "{}: expected a list of at most {} modules",
        quote_path(path),
        kMaxModules
    );
    for (const Json& module : modules) {
      const std::string full = json_string(module, "type", "");
      add(full.substr(full.rfind('.') + 1), folder_of(module));
    }
    require(
        section_.contains("pooling"),
        ErrorCode::kUnsupported,
        "{}: has no module Pooling",
        quote_path(path)
    );
  }

  const Json& section() const { return section_; }

  TensorMap& tensors() { return tensors_; }

  const std::map<std::string, fs::path>& file_of() const { return file_of_; }

 private:
  // A module's folder, inside of the model's.
  fs::path folder_of(const Json& module) const {
    const fs::path path = json_string(module, "path", "");
    const bool is_plain = !path.has_root_path() && path.lexically_normal() == path &&
                          (path.empty() || *path.begin() != "..");
    require(
        is_plain,
        ErrorCode::kCorruptData,
        "{}: path is {}, expected a folder's name",
        quote_path(dir_ / kModules),
        quote_path(path)
    );
    return dir_ / path;
  }

  void add(const std::string& type, const fs::path& folder) {
    const bool is_pooled = section_.contains("pooling");
    const fs::path file = folder / "config.json";
    if (type == "Transformer" && !is_pooled) {
      if (const std::int64_t most = read_max_tokens(folder); most > 0) {
        section_["max_tokens"] = most;
      }
      return;
    }
    if (type == "Pooling" && !is_pooled) {
      section_["pooling"] = read_pooling(read_json_file(file), file);
    } else if (type == "Dense" && is_pooled && !section_["normalize"].get<bool>()) {
      section_["dense"].push_back(read_activation(read_json_file(file), file));
      add_tensors(folder / "model.safetensors");
    } else if (type == "Normalize" && is_pooled) {
      section_["normalize"] = true;
    } else {
      throw Error(
          ErrorCode::kUnsupported,
          fmt::format(
              "{}: has a module {} {}, expected Transformer, Pooling, any Dense, Normalize",
              quote_path(dir_ / kModules),
              quote(type),
              is_pooled ? "after Pooling" : "before Pooling"
          )
      );
    }
  }

  void add_tensors(const fs::path& file) {
    const std::size_t layer = section_["dense"].size() - 1;
    for (auto& [name, tensor] : read_safetensors(file)) {
      constexpr std::string_view kScope = "linear.";
      const std::string part = name.starts_with(kScope) ? name.substr(kScope.size()) : name;
      const std::string ours = fmt::format("dense.{}.{}", layer, part);
      tensors_.emplace(ours, std::move(tensor));
      file_of_.emplace(ours, file);
    }
  }

  fs::path dir_;
  Json section_ = {{"normalize", false}, {"dense", Json::array()}};
  TensorMap tensors_;
  std::map<std::string, fs::path> file_of_;
};

}  // namespace

void add_sentence_transformers(const fs::path& dir, Json& config, ModelTensors& tensors) {
  std::error_code ignored;
  if (!config.is_object() || !fs::exists(dir / kModules, ignored)) {
    return;
  }
  ModuleReader reader(dir);
  Json& section = config[std::string(models::kTextEmbedding)];
  try {
    reader.read();
    section = reader.section();
  } catch (const Error& error) {
    section = {{"problem", error.what()}};
    return;
  }
  for (auto& [name, tensor] : reader.tensors()) {
    tensors.tensors.emplace(name, std::move(tensor));
    tensors.file_of.emplace(name, reader.file_of().at(name));
  }
}

}  // namespace saker::load::importers
