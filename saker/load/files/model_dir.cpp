// SPDX-License-Identifier: Apache-2.0
#include "saker/load/files/model_dir.h"

#include "saker/base/error.h"
#include "saker/base/utf8.h"
#include "saker/hub/cached_path.h"
#include "saker/hub/environment.h"
#include "saker/hub/model_name.h"
#include "saker/load/files/gguf_magic.h"
#include "saker/load/files/named_models.h"
#include "saker/load/files/ollama_models.h"
#include "saker/load/files/program_path.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace saker::load {
namespace {

namespace fs = std::filesystem;

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

std::optional<fs::path> find_file(const fs::path& dir, const char* name) {
  std::error_code ignored;
  return fs::exists(dir / name, ignored) ? std::optional(dir / name) : std::nullopt;
}

}  // namespace

ModelDir open_model_dir(const fs::path& path) {
  require(is_folder(path), ErrorCode::kNotFound, "{}: is not a folder", quote_path(path));
  return {
      .path = path,
      .config = find_file(path, "config.json"),
      .generation_config = find_file(path, "generation_config.json"),
      .tokenizer = find_file(path, "tokenizer.json"),
      .tokenizer_config = find_file(path, "tokenizer_config.json"),
      .chat_template = find_file(path, "chat_template.jinja"),
  };
}

fs::path config_of(const ModelDir& dir) {
  require(
      dir.config.has_value(), ErrorCode::kNotFound, "{}: holds no config.json", quote_path(dir.path)
  );
  return *dir.config;
}

std::optional<fs::path> find_draft(const fs::path& model_dir) {
  for (const auto* name : {"draft", "drafter"}) {
    if (find_file(model_dir / name, "config.json")) {
      return model_dir / name;
    }
  }
  return std::nullopt;
}

fs::path demo_model_dir() {
  std::vector<fs::path> tried;
  for (const fs::path& holder : {program_path(), library_path()}) {
    if (!holder.empty()) {
      tried.push_back((holder.parent_path() / SAKER_INSTALLED_MODELS / "demo").lexically_normal());
    }
  }
  tried.emplace_back(SAKER_DEMO_MODEL_DIR);
  for (const fs::path& path : tried) {
    if (find_file(path, "config.json")) {
      return path;
    }
  }
  throw Error(
      ErrorCode::kNotFound,
      fmt::format("the bundled model is missing: {} holds no config.json", quote_path(tried.back()))
  );
}

fs::path resolve_model(std::string_view model) {
  if (model.empty()) {
    return demo_model_dir();
  }
  const std::string name = quote(model, model.size());
  // Paths end at a NUL, so a name that contains one would open something else.
  require(
      model.find('\0') == std::string_view::npos,
      ErrorCode::kInvalidArgument,
      "model {} holds a NUL byte",
      name
  );
  std::error_code ignored;
  if (is_folder(model) || looks_like_gguf(model)) {
    return model;
  }
  require(
      !fs::exists(model, ignored),
      ErrorCode::kInvalidArgument,
      "{} is a file, expected a model folder, a file in GGUF (.gguf) or a Hugging Face repo id",
      name
  );
  if (const auto named = find_named_model(model)) {
    return *named;
  }
  if (model.starts_with(kOllamaPrefix)) {
    return find_ollama_model(model.substr(kOllamaPrefix.size()));
  }
  const auto parsed = hub::parse_model_name(model);
  require(
      parsed.has_value(),
      ErrorCode::kNotFound,
      "{} does not exist and is no Hugging Face repo id: expected {}",
      name,
      hub::name_hint(model)
  );
  const fs::path cache = hub::cache_dir();
  const auto found = hub::cached_path(cache, *parsed);
  require(
      found.has_value(),
      ErrorCode::kNotFound,
      "{} is neither a folder nor in the hub cache {}: it has to be pulled first",
      name,
      quote_path(cache)
  );
  spdlog::debug("model {} is {}", name, found->string());
  return *found;
}

fs::path resolve_source(std::string_view source) {
  std::error_code ignored;
  const bool is_file =
      source.find('\0') == std::string_view::npos && fs::is_regular_file(fs::path(source), ignored);
  return is_file ? fs::path(source) : resolve_model(source);
}

}  // namespace saker::load
