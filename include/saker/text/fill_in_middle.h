// SPDX-License-Identifier: Apache-2.0
#pragma once

// Prompts that ask for the text between two others, for models whose vocabulary has tokens for it.

#include "saker/text/tokenizer.h"

#include <optional>
#include <string>
#include <string_view>

namespace saker::text {

// The prompt whose answer stands between the two texts: special tokens of the model around them
// (Bavarian et al., "Efficient Training of Language Models to Fill in the Middle", 2022). Nothing
// if the vocabulary has no such tokens. Any thread.
std::optional<std::string> fill_in_middle_prompt(
    const Tokenizer& tokenizer, std::string_view before, std::string_view after
);

}  // namespace saker::text
