// SPDX-License-Identifier: Apache-2.0
#pragma once

// The tokens with a role in a GGUF file: those around texts, those that end answers, padding. The
// inverse of what gguf_tokenizer.h and gguf_known_tokens.h read. Pure; any thread.

#include "saker/base/json/json.h"
#include "saker/load/export/gguf_metadata.h"
#include "saker/text/model_texts.h"
#include "saker/text/tokenizer.h"
#include "saker/text/tokenizer_config.h"

#include <cstdint>
#include <string>
#include <vector>

namespace saker::load::gguf {

struct SpecialTokenSources {
  const text::ModelTexts& texts;
  const Json& config;  // config.json.
  const text::TokenizerConfig& tokenizer_config;
  const text::Tokenizer& engine;
};

// Appends ids and flags to `pairs`, and a line to `notes` for what files cannot say. `rows`: the
// model's tokens. Throws kUnsupported if the tokenizer puts other tokens around texts than BOS and
// EOS, kCorruptData if the configuration's ids are none.
void add_special_tokens(
    const SpecialTokenSources& sources,
    std::int64_t rows,
    Metadata& pairs,
    std::vector<std::string>& notes
);

}  // namespace saker::load::gguf
