// SPDX-License-Identifier: Apache-2.0
#pragma once

// The models that `create` made: a model folder for each name, with its settings in the file
// `saker.json` (docs/adr/0033-named-models.md). They lie in $SAKER_MODELS, else in saker/models of
// $XDG_DATA_HOME or ~/.local/share. A folder appears, is replaced and is removed as a whole.

#include "saker/base/file_lock.h"
#include "saker/base/json/json.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace saker::load {

// Settings of a named model beside its weights.
struct ModelSettings {
  std::string from;               // Origin of its weights, as written.
  std::string system;             // System message of its chats; empty: none.
  Json messages = Json::array();  // First messages of each chat, after the system's.
  Json options = Json::object();  // Request options, as in records.
  bool has_adapter = false;       // In the subfolder `adapter`.
};

// `text` as the name of a model, without the tag "latest". Empty unless it has only letters,
// digits, '.', '-' and '_', and possibly a tag of these behind ':'.
std::optional<std::string> parse_stored_name(std::string_view text);

// Throws kNotFound if the environment names no folder.
std::filesystem::path named_models_dir();

// The model's folder; empty if there is no such model.
std::optional<std::filesystem::path> find_named_model(std::string_view name);

// The settings of a named model; default ones for any other path. Throws kCorruptData for a broken
// file.
ModelSettings read_settings(const std::filesystem::path& model);
void write_settings(const std::filesystem::path& folder, const ModelSettings& settings);

struct NamedModel {
  std::string name;
  std::filesystem::path path;
  std::string from;  // Empty if the settings can't be read.
  std::uintmax_t bytes = 0;
  std::int64_t modified = 0;  // Seconds since 1970.
};

// Sorted by name.
std::vector<NamedModel> named_models();

// Bytes of all files in its folder.
std::uintmax_t named_model_bytes(const std::filesystem::path& model);

// Removes a model. Throws kNotFound if there is none of this name.
void remove_named_model(const std::string& name);

// A model that is being made, in a folder beside the others that nobody finds before `place`. Also
// removes folders that ended processes have left.
class NewModel {
 public:
  NewModel();
  NewModel(const NewModel&) = delete;
  NewModel& operator=(const NewModel&) = delete;
  ~NewModel();

  // The folder to create and fill.
  std::filesystem::path path() const { return folder_ / "model"; }

  // Gives the model its name, from parse_stored_name; replaces another model of that name.
  std::filesystem::path place(const std::string& name) const;

 private:
  std::filesystem::path folder_;
  std::optional<FileLock> lock_;  // Shows that this process is working here.
};

}  // namespace saker::load
