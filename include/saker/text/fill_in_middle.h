// SPDX-License-Identifier: Apache-2.0
#pragma once

// Prompts that ask for the text between two others, for models whose vocabulary has tokens for it.

#include "saker/text/tokenizer.h"

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace saker::text {

// A text beside the one that is written, such as another file of a project.
struct FileText {
  std::string name;
  std::string text;
};

// The prompt whose answer stands between the two texts: special tokens of the model around them
// (Bavarian et al., "Efficient Training of Language Models to Fill in the Middle", 2022). Nothing
// if the vocabulary has no such tokens. `files` come first: with the model's tokens for files of a repository (Hui et al.,
// "Qwen2.5-Coder Technical Report", 2024), else as snippets. Names of tokens in the texts stay text.
// Any thread.
std::optional<MarkedText> fill_in_middle_prompt(
    const Tokenizer& tokenizer,
    std::string_view before,
    std::string_view after,
    std::span<const FileText> files = {}
);

}  // namespace saker::text
