// SPDX-License-Identifier: Apache-2.0
#pragma once

// The texts of `embed` and `rerank`: on the command line, or in a file.

#include "saker/engine/embedding.h"

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

namespace saker::cli {

struct TextArgs {
  std::vector<std::string> texts;
  std::string file;  // Empty: the texts above.
};

// The options that fill it; exactly one is to be given.
struct TextOptions {
  CLI::Option* texts = nullptr;
  CLI::Option* file = nullptr;
};

// Adds -t and -f. `each`: "Texts to embed".
TextOptions add_text_args(CLI::App& command, TextArgs& args, const std::string& each);

// The texts in order. A file *.jsonl has a record a line: a text, {"text": ...} or {"tokens": ...};
// any other file is one text. Throws kInvalidArgument, naming file and line, for other records.
std::vector<engine::EmbedInput> read_inputs(const TextArgs& args);

// As above without token ids.
std::vector<std::string> read_texts(const TextArgs& args);

}  // namespace saker::cli
