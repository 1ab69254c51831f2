// SPDX-License-Identifier: Apache-2.0
#pragma once

// A Modelfile as `ollama create` reads it: one instruction per line, its name in any case; "#"
// starts a comment; text over several lines stands between """ or ". `create` uses all of it,
// `convert` the model and its draft. Format:
// https://github.com/ollama/ollama/blob/main/docs/modelfile.md

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace saker::load {

inline constexpr std::size_t kMaxModelfileBytes = std::size_t{16} << 20;

struct Modelfile {
  struct Parameter {
    std::string name;  // As written.
    std::string value;
  };

  struct Message {
    std::string role;  // "system", "user" or "assistant".
    std::string content;
  };

  std::string from;
  std::string draft;  // Empty: none, also below.
  std::string adapter;
  std::optional<std::string> system;  // If repeated, the last one, also below.
  std::optional<std::string> chat_template;
  std::vector<std::string> licenses;
  std::vector<Parameter> parameters;
  std::vector<Message> messages;
  std::vector<std::string> instructions;  // The names of all present ones, each once.
};

// `what` names the file in messages. Throws kCorruptData, naming the line, unless there is exactly
// one FROM. Throws it too for a second DRAFT or ADAPTER, an unknown instruction or role, or text
// that doesn't end.
Modelfile parse_modelfile(std::string_view text, std::string_view what);

// A model that a Modelfile names: a folder or GGUF file beside it, or the result of
// `resolve_model`.
std::filesystem::path find_named(const std::string& name, const std::filesystem::path& beside);

// The models of a Modelfile for `convert`.
struct ModelfileFolders {
  std::filesystem::path from;
  std::filesystem::path draft;       // Empty: none.
  std::vector<std::string> ignored;  // Instructions that have no effect on `convert`.
};

// Throws as parse_modelfile and resolve_model do, and kUnsupported for ADAPTER.
ModelfileFolders read_modelfile(const std::filesystem::path& path);

}  // namespace saker::load
