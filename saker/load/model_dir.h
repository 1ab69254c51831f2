// SPDX-License-Identifier: Apache-2.0
#pragma once

// From what a user types to a model folder, and which of the known files it holds. Nothing here
// reads weights.

#include <filesystem>
#include <optional>
#include <string_view>

namespace saker::load {

// A folder with the files that were found; symbolic links are followed, as the hub cache is made of
// them.
struct ModelDir {
  std::filesystem::path path;
  std::optional<std::filesystem::path> config;             // config.json
  std::optional<std::filesystem::path> generation_config;  // generation_config.json
  std::optional<std::filesystem::path> tokenizer;          // tokenizer.json
  std::optional<std::filesystem::path> tokenizer_config;   // tokenizer_config.json
  std::optional<std::filesystem::path> chat_template;      // chat_template.jinja
};

// Throws kNotFound unless `path` is a folder.
ModelDir open_model_dir(const std::filesystem::path& path);
// Its config.json. Throws kNotFound without one.
std::filesystem::path config_of(const ModelDir& dir);

// The draft that a model's folder brings: `draft` or `drafter` inside of it with a configuration.
std::optional<std::filesystem::path> find_draft(const std::filesystem::path& model_dir);

// The folder that `model` names: a folder (or a file *.gguf: the file), a Hugging Face repo id
// ("org/name", "org/name@revision", "org/name:FILE" for a GGUF file of it) in the local hub cache,
// or, when empty, the bundled demo model. Throws kNotFound saying what was tried.
std::filesystem::path resolve_model(std::string_view model);

// The same of what is converted, which may also be any file of another program.
std::filesystem::path resolve_source(std::string_view source);

// The bundled demo model: beside the installed program, else in the source tree that built it.
std::filesystem::path demo_model_dir();

}  // namespace saker::load
