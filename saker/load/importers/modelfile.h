// SPDX-License-Identifier: Apache-2.0
#pragma once

// A Modelfile as `ollama create` reads it: one instruction a line, its name in any case, "#" before
// a comment, and text over several lines between """ or ". `create` takes all of it, `convert` the
// model and its draft.
// Format: https://github.com/ollama/ollama/blob/main/docs/modelfile.md

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
    std::string name;  // As it was written.
    std::string value;
  };

  struct Message {
    std::string role;  // "system", "user" or "assistant".
    std::string content;
  };

  std::string from;
  std::string draft;  // Empty: none, here and below.
  std::string adapter;
  std::optional<std::string> system;  // The last one, here and below.
  std::optional<std::string> chat_template;
  std::vector<std::string> licenses;
  std::vector<Parameter> parameters;
  std::vector<Message> messages;
  std::vector<std::string> instructions;  // The names of all that are there, each once.
};

// `what` names the file in messages. Throws kCorruptData, naming the line, without exactly one
// FROM, with a second DRAFT or ADAPTER, an unknown instruction or role, or text that doesn't end.
Modelfile parse_modelfile(std::string_view text, std::string_view what);

// A model that a file names: a folder or GGUF file beside it, or whatever `resolve_model` finds.
std::filesystem::path find_named(const std::string& name, const std::filesystem::path& beside);

// The models of a file that `convert` takes.
struct ModelfileFolders {
  std::filesystem::path from;
  std::filesystem::path draft;       // Empty: none.
  std::vector<std::string> ignored;  // Instructions that change nothing there.
};

// Throws as parse_modelfile and resolve_model, and kUnsupported for ADAPTER.
ModelfileFolders read_modelfile(const std::filesystem::path& path);

}  // namespace saker::load
