// SPDX-License-Identifier: Apache-2.0
#pragma once

// A Modelfile as `ollama create` reads it: one instruction a line, its name in any case, "#" before
// a comment, and text over several lines between """. Of its instructions we take the model and its
// draft; the rest says how a server runs them.
// Format: https://github.com/ollama/ollama/blob/main/docs/modelfile.md

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace saker::load {

inline constexpr std::size_t kMaxModelfileBytes = std::size_t{16} << 20;

struct Modelfile {
  std::string from;
  std::string draft;                 // Empty: none.
  std::vector<std::string> ignored;  // Instructions that change nothing here, each once.
};

// `what` names the file in messages. Throws kCorruptData, naming the line, without exactly one
// FROM, with a second DRAFT, an unknown instruction or text that doesn't end; kUnsupported for
// ADAPTER.
Modelfile parse_modelfile(std::string_view text, std::string_view what);

// The models of a file, found: folders beside it, or whatever `resolve_model` finds.
struct ModelfileFolders {
  std::filesystem::path from;
  std::filesystem::path draft;  // Empty: none.
  std::vector<std::string> ignored;
};

// Throws as parse_modelfile and resolve_model.
ModelfileFolders read_modelfile(const std::filesystem::path& path);

}  // namespace saker::load
