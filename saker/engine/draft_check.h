// SPDX-License-Identifier: Apache-2.0
#pragma once

// Checks that a draft model uses the target's tokens.

#include "saker/engine/prompts.h"

#include <filesystem>

namespace saker::engine {

// Compares the tokenizers. Returns false if one of the two is missing. Throws kInvalidArgument,
// naming the difference, unless both have the same tokens under the same ids.
bool check_draft_tokens(const Prompts& target, const std::filesystem::path& draft);

struct HeadSizes {
  int target = 0;
  int draft = 0;
};

// `same_tokens`: the tokenizers were compared, so heads may be padded to different sizes. Throws
// kInvalidArgument for any other difference in size.
void check_draft_heads(
    const HeadSizes& sizes, bool same_tokens, const std::filesystem::path& draft
);

}  // namespace saker::engine
