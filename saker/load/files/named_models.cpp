// SPDX-License-Identifier: Apache-2.0
#include "saker/load/files/named_models.h"

#include "saker/base/error.h"
#include "saker/base/files/atomic_file.h"
#include "saker/base/files/temporary_path.h"
#include "saker/base/utf8.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <system_error>
#include <utility>

namespace saker::load {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxName = 96;
constexpr std::string_view kLatest = ":latest";
constexpr const char* kSettings = "saker.json";
constexpr const char* kLock = ".lock";

bool is_plain(std::string_view part) {
  return !part.empty() && part.size() <= kMaxName && part.front() != '.' && part.front() != '-' &&
         std::ranges::all_of(part, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '.' || c == '-' || c == '_';
         });
}

// An absolute path in the environment; empty: none.
fs::path folder_in(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value == '/' ? fs::path(value) : fs::path();
}

std::optional<fs::path> store() {
  if (const fs::path folder = folder_in("SAKER_MODELS"); !folder.empty()) {
    return folder;
  }
  if (const fs::path data = folder_in("XDG_DATA_HOME"); !data.empty()) {
    return data / "saker" / "models";
  }
  const fs::path home = folder_in("HOME");
  return home.empty() ? std::nullopt
                      : std::optional(home / ".local" / "share" / "saker" / "models");
}

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

// A name for a folder that is being removed; no model can have it.
fs::path hidden_name(const fs::path& folder) {
  return temporary_path(folder / "model");
}

void rename_whole(const fs::path& from, const fs::path& to) {
  std::error_code failed;
  fs::rename(from, to, failed);
  require(
      !failed, ErrorCode::kNotFound, "{}: cannot be renamed: {}", quote_path(from), failed.message()
  );
}

// True if a process works in this folder.
bool is_at_work(const fs::path& folder) {
  const int descriptor = ::open((folder / kLock).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (descriptor < 0) {
    return false;
  }
  const bool locked = !try_lock(descriptor);
  ::close(descriptor);
  return locked;
}

// Removes folders that ended processes have left. REQUIRES: the store's lock is held.
void sweep(const fs::path& store) {
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(store, failed)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with('.') && name.ends_with(".tmp") && !is_at_work(entry.path())) {
      std::error_code ignored;
      fs::remove_all(entry.path(), ignored);
    }
  }
}

bool is_message(const Json& message) {
  return message.is_object() && message.contains("role") && message.at("role").is_string() &&
         message.contains("content") && message.at("content").is_string();
}

}  // namespace

std::optional<std::string> parse_stored_name(std::string_view text) {
  if (text.ends_with(kLatest)) {
    text.remove_suffix(kLatest.size());
  }
  const std::size_t colon = text.find(':');
  const bool is_name = is_plain(text.substr(0, colon)) &&
                       (colon == std::string_view::npos || is_plain(text.substr(colon + 1)));
  return is_name ? std::optional(std::string(text)) : std::nullopt;
}

fs::path named_models_dir() {
  const auto folder = store();
  require(
      folder.has_value(),
      ErrorCode::kNotFound,
      "no folder for named models: none of SAKER_MODELS, XDG_DATA_HOME and HOME is an absolute path"
  );
  return *folder;
}

std::optional<fs::path> find_named_model(std::string_view name) {
  const auto parsed = parse_stored_name(name);
  const auto folder = store();
  if (!parsed || !folder || !is_folder(*folder / *parsed)) {
    return std::nullopt;
  }
  return *folder / *parsed;
}

ModelSettings read_settings(const fs::path& model) {
  ModelSettings settings;
  const auto folder = store();
  std::error_code failed;
  if (!folder || !fs::equivalent(model.parent_path(), *folder, failed) || failed ||
      !fs::exists(model / kSettings, failed)) {
    return settings;
  }
  const Json json = read_json_file(model / kSettings);
  settings.from = json_string(json, "from", "");
  settings.system = json_string(json, "system", "");
  settings.has_adapter = json_bool(json, "adapter", false);
  settings.messages = json.value("messages", Json::array());
  settings.options = json.value("options", Json::object());
  require(
      settings.options.is_object() && settings.messages.is_array() &&
          std::ranges::all_of(settings.messages, is_message),
      ErrorCode::kCorruptData,
      "{}: expected options as an object, messages as a list of {{role, content}}",
      quote_path(model / kSettings)
  );
  return settings;
}

void write_settings(const fs::path& folder, const ModelSettings& settings) {
  const Json json = {
      {"from", settings.from},
      {"system", settings.system},
      {"messages", settings.messages},
      {"options", settings.options},
      {"adapter", settings.has_adapter},
  };
  AtomicFile file(folder / kSettings);
  file.write(json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
  file.commit();
}

std::vector<NamedModel> named_models() {
  std::vector<NamedModel> models;
  const auto folder = store();
  std::error_code failed;
  if (!folder) {
    return models;
  }
  for (const auto& entry : fs::directory_iterator(*folder, failed)) {
    const std::string name = entry.path().filename().string();
    if (parse_stored_name(name) != name || !is_folder(entry.path())) {
      continue;
    }
    NamedModel model{
        .name = name, .path = entry.path(), .from = {}, .bytes = named_model_bytes(entry.path())
    };
    struct stat status{};
    model.modified = ::stat(entry.path().c_str(), &status) == 0 ? status.st_mtime : 0;
    try {
      model.from = read_settings(entry.path()).from;
    } catch (const Error&) {
      model.from.clear();  // The list also serves to find models to remove.
    }
    models.push_back(std::move(model));
  }
  std::ranges::sort(models, {}, &NamedModel::name);
  return models;
}

std::uintmax_t named_model_bytes(const fs::path& model) {
  std::uintmax_t bytes = 0;
  std::error_code failed;
  for (fs::recursive_directory_iterator at(model, failed), end; !failed && at != end;
       at.increment(failed)) {
    std::error_code unknown;
    if (at->is_regular_file(unknown)) {
      const std::uintmax_t size = at->file_size(unknown);
      bytes += unknown ? 0 : size;
    }
  }
  return bytes;
}

void remove_named_model(const std::string& name) {
  const auto path = find_named_model(name);
  require(path.has_value(), ErrorCode::kNotFound, "there is no model named {}", quote(name));
  const FileLock lock(path->parent_path() / kLock);
  const fs::path leaving = hidden_name(path->parent_path());
  rename_whole(*path, leaving);
  std::error_code ignored;
  fs::remove_all(leaving, ignored);
}

NewModel::NewModel() {
  const fs::path store = named_models_dir();
  std::error_code failed;
  fs::create_directories(store, failed);
  require(
      !failed, ErrorCode::kNotFound, "{}: cannot be made: {}", quote_path(store), failed.message()
  );
  const FileLock lock(store / kLock);
  sweep(store);
  folder_ = hidden_name(store);
  make_new_folder(folder_, folder_);
  lock_.emplace(folder_ / kLock);
}

NewModel::~NewModel() {
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

fs::path NewModel::place(const std::string& name) const {
  const fs::path store = folder_.parent_path();
  const fs::path final = store / name;
  const FileLock lock(store / kLock);
  std::error_code ignored;
  if (!fs::exists(fs::symlink_status(final, ignored))) {
    rename_whole(path(), final);
    return final;
  }
  const fs::path leaving = folder_ / "replaced";
  rename_whole(final, leaving);
  try {
    rename_whole(path(), final);
  } catch (const Error&) {
    fs::rename(leaving, final, ignored);
    throw;
  }
  return final;
}

}  // namespace saker::load
