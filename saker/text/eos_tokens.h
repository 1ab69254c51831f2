// SPDX-License-Identifier: Apache-2.0
#pragma once

// The ids that end an answer: `eos_token_id` (a number or a list) of config.json, or of the
// `text_config` there, replaced by that
// of generation_config.json where this gives one (0 and an empty list are none, as in Python), and
// the tokenizer's EOS.

#include "saker/text/tokenizer.h"
#include "saker/text/tokenizer_config.h"

#include <cstdint>
#include <vector>

namespace saker::text {

// Sorted, each id once. Missing files are no error, and without a tokenizer its EOS is left out.
// Throws kCorruptData for values of config.json that are no ids.
std::vector<std::int32_t> load_eos_tokens(
    const ModelTexts& texts, const Tokenizer* tokenizer, const TokenizerConfig& config
);

}  // namespace saker::text
