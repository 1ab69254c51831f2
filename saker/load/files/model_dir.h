// SPDX-License-Identifier: Apache-2.0
#pragma once

// Resolves a user's model name to a model folder, and finds the known files in it. Reads no
// weights.

#include <filesystem>
#include <optional>
#include <string_view>

namespace saker::load {

// A folder and the files found in it. Symbolic links are followed, since the hub cache consists of
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

// The draft in a model's folder: its subfolder `draft` or `drafter`, if that has a configuration.
std::optional<std::filesystem::path> find_draft(const std::filesystem::path& model_dir);

// The folder or file that `model` names: a folder, a GGUF file, a model of ollama ("ollama:NAME"),
// or a Hugging Face repo id in the local hub cache ("org/name", "org/name@revision",
// "org/name:FILE" for a GGUF file). Empty: the bundled demo model. Throws kNotFound, listing the
// attempts.
std::filesystem::path resolve_model(std::string_view model);

// As above, for a conversion's source, which may also be any file of another program.
std::filesystem::path resolve_source(std::string_view source);

// The bundled demo model: beside the installed program, else in the source tree that built it.
std::filesystem::path demo_model_dir();

}  // namespace saker::load
