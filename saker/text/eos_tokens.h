// SPDX-License-Identifier: Apache-2.0
#pragma once

// The ids that end an answer: `eos_token_id` of the configuration and the tokenizer's EOS.
// `eos_token_id` (a number or a list) comes from generation_config.json if that has one (0 and an
// empty list count as none, as in Python). Else it comes from config.json, or from the
// `text_config` there.

#include "saker/text/tokenizer.h"
#include "saker/text/tokenizer_config.h"

#include <cstdint>
#include <vector>

namespace saker::text {

// Sorted, each id once. Missing files are no error; without a tokenizer its EOS is left out. Throws
// kCorruptData if config.json holds values that are no ids.
std::vector<std::int32_t> load_eos_tokens(
    const ModelTexts& texts, const Tokenizer* tokenizer, const TokenizerConfig& config
);

}  // namespace saker::text
