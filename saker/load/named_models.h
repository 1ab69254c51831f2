// SPDX-License-Identifier: Apache-2.0
#pragma once

// The models that `create` made: a model folder each, by its name, with the settings that go with
// it in the file `saker.json` (docs/adr/0033-named-models.md). They lie in $SAKER_MODELS, else in
// saker/models of $XDG_DATA_HOME or ~/.local/share. A folder appears, is replaced and goes whole.

#include "saker/base/file_lock.h"
#include "saker/base/json.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace saker::load {

// What a named model asks for beside its weights.
struct ModelSettings {
  std::string from;               // Where its weights came from, as it was written.
  std::string system;             // The system's message of its chats; empty: none.
  Json messages = Json::array();  // Said at the beginning of each chat, behind that.
  Json options = Json::object();  // Request options, as in records.
  bool has_adapter = false;       // In the folder `adapter`.
};

// `text` as the name of a model, without the tag "latest"; none where it can't be one: letters,
// digits, '.', '-' and '_', and maybe a tag of these behind ':'.
std::optional<std::string> parse_stored_name(std::string_view text);

// Throws kNotFound where the environment says no folder.
std::filesystem::path named_models_dir();

// The model's folder; none where there is no such model.
std::optional<std::filesystem::path> find_named_model(std::string_view name);

// Those of a model of ours; nothing for any other path. Throws kCorruptData for a broken file.
ModelSettings read_settings(const std::filesystem::path& model);
void write_settings(const std::filesystem::path& folder, const ModelSettings& settings);

struct NamedModel {
  std::string name;
  std::filesystem::path path;
  std::string from;  // Empty where the settings can't be read.
  std::uintmax_t bytes = 0;
  std::int64_t modified = 0;  // Seconds since 1970.
};

// By name.
std::vector<NamedModel> named_models();

// Of all files in its folder.
std::uintmax_t named_model_bytes(const std::filesystem::path& model);

// Takes a model away. Throws kNotFound where there is none of this name.
void remove_named_model(const std::string& name);

// A model that is being made: a folder beside the others, which nobody finds before it is placed.
// What processes that ended too soon have left there goes with the next one.
class NewModel {
 public:
  NewModel();
  NewModel(const NewModel&) = delete;
  NewModel& operator=(const NewModel&) = delete;
  ~NewModel();

  // Where the model's folder is to be made.
  std::filesystem::path path() const { return folder_ / "model"; }

  // Gives it the name, one of parse_stored_name; another model of that name goes.
  std::filesystem::path place(const std::string& name) const;

 private:
  std::filesystem::path folder_;
  std::optional<FileLock> lock_;  // Tells that somebody works here.
};

}  // namespace saker::load
