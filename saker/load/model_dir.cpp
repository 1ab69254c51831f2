// SPDX-License-Identifier: Apache-2.0
#include "saker/load/model_dir.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#ifdef __APPLE__
#include <mach-o/dyld.h>
#endif

#include "saker/base/error.h"
#include "saker/base/mapped_file.h"
#include "saker/base/utf8.h"

namespace saker::load {
namespace {

namespace fs = std::filesystem;

std::string show(const fs::path& path) {
  return quote(path.native(), path.native().size());
}

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

std::optional<fs::path> find_file(const fs::path& dir, const char* name) {
  std::error_code ignored;
  return fs::exists(dir / name, ignored) ? std::optional(dir / name) : std::nullopt;
}

// A non-empty environment variable.
std::optional<fs::path> environment_path(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? std::optional<fs::path>(value) : std::nullopt;
}

// The running program, with links resolved; empty where the system doesn't tell.
fs::path program_path() {
  std::error_code ignored;
#ifdef __APPLE__
  char buffer[4096];
  std::uint32_t size = sizeof(buffer);
  return _NSGetExecutablePath(buffer, &size) == 0 ? fs::canonical(buffer, ignored) : fs::path();
#else
  return fs::read_symlink("/proc/self/exe", ignored);
#endif
}

// Names of repositories and revisions become parts of a path.
bool is_hub_name(std::string_view name) {
  return !name.empty() && name.size() <= 96 && name.front() != '.' && name.front() != '-' &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '.' || c == '-' || c == '_';
         });
}

// "org/name" or "name" as the cache names its folder; none when it can't be a repo id.
std::optional<std::string> hub_folder(std::string_view repo) {
  const std::size_t slash = repo.find('/');
  if (slash == std::string_view::npos) {
    return is_hub_name(repo) ? std::optional(fmt::format("models--{}", repo)) : std::nullopt;
  }
  const std::string_view owner = repo.substr(0, slash);
  const std::string_view name = repo.substr(slash + 1);
  return is_hub_name(owner) && is_hub_name(name)
             ? std::optional(fmt::format("models--{}--{}", owner, name))
             : std::nullopt;
}

// The snapshot that refs/main names, else the only one.
std::optional<fs::path> find_snapshot(const fs::path& repo) {
  const fs::path snapshots = repo / "snapshots";
  std::error_code failed;
  if (const fs::path main = repo / "refs" / "main"; fs::exists(main, failed)) {
    std::string revision = read_file(main, 4096);
    while (!revision.empty() && (revision.back() == '\n' || revision.back() == '\r')) {
      revision.pop_back();
    }
    if (is_hub_name(revision) && is_folder(snapshots / revision)) {
      return snapshots / revision;
    }
  }
  std::vector<fs::path> all;
  for (fs::directory_iterator it(snapshots, failed), end; !failed && it != end;
       it.increment(failed)) {
    if (is_folder(it->path())) {
      all.push_back(it->path());
    }
  }
  return all.size() == 1 ? std::optional(all.front()) : std::nullopt;
}

}  // namespace

ModelDir open_model_dir(const fs::path& path) {
  require(is_folder(path), ErrorCode::kNotFound, "{}: is not a folder", show(path));
  return {
      .path = path,
      .config = find_file(path, "config.json"),
      .generation_config = find_file(path, "generation_config.json"),
      .tokenizer = find_file(path, "tokenizer.json"),
      .tokenizer_config = find_file(path, "tokenizer_config.json"),
      .chat_template = find_file(path, "chat_template.jinja"),
  };
}

fs::path hub_cache_dir() {
  if (const auto cache = environment_path("HF_HUB_CACHE")) {
    return *cache;
  }
  if (const auto home = environment_path("HF_HOME")) {
    return *home / "hub";
  }
  if (const auto cache = environment_path("XDG_CACHE_HOME")) {
    return *cache / "huggingface" / "hub";
  }
  const auto home = environment_path("HOME");
  return home.value_or("/") / fs::path(".cache/huggingface/hub");
}

fs::path demo_model_dir() {
  std::vector<fs::path> tried;
  if (const fs::path program = program_path(); !program.empty()) {
    tried.push_back((program.parent_path() / SAKER_INSTALLED_MODELS / "demo").lexically_normal());
  }
  tried.emplace_back(SAKER_DEMO_MODEL_DIR);
  for (const fs::path& path : tried) {
    if (find_file(path, "config.json")) {
      return path;
    }
  }
  throw Error(
      ErrorCode::kNotFound,
      fmt::format("the bundled model is missing: {} holds no config.json", show(tried.back()))
  );
}

fs::path resolve_model(std::string_view model) {
  if (model.empty()) {
    return demo_model_dir();
  }
  const std::string name = quote(model, model.size());
  // Paths end at a NUL, so a name with one would open something else.
  require(
      model.find('\0') == std::string_view::npos,
      ErrorCode::kInvalidArgument,
      "model {} holds a NUL byte",
      name
  );
  if (is_folder(model)) {
    return model;
  }
  std::error_code ignored;
  require(
      !fs::exists(model, ignored),
      ErrorCode::kInvalidArgument,
      "{} is a file, expected a model folder or a Hugging Face repo id",
      name
  );
  const auto folder = hub_folder(model);
  require(
      folder.has_value(),
      ErrorCode::kNotFound,
      "{} does not exist and is no Hugging Face repo id ('org/name')",
      name
  );
  const fs::path cache = hub_cache_dir();
  const auto snapshot = find_snapshot(cache / *folder);
  require(
      snapshot.has_value(),
      ErrorCode::kNotFound,
      "{} is neither a folder nor in the hub cache {}; 'hf download {}' puts it there",
      name,
      show(cache),
      model
  );
  return *snapshot;
}

}  // namespace saker::load
