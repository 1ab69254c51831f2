// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads how a model's texts for vectors are encoded: prompts of config_sentence_transformers.json,
// end tokens of config.json and tokenizer_config.json. Pure; any thread.

#include "saker/engine/prompts.h"
#include "saker/text/model_texts.h"
#include "saker/text/tokenizer_config.h"

#include <string>
#include <vector>

namespace saker::engine {

// Values that make no sense are left out, with a line in `warnings`: they concern vectors alone.
EmbeddingTexts read_embedding_texts(
    const text::ModelTexts& texts,
    const text::TokenizerConfig& tokenizer,
    std::vector<std::string>& warnings
);

}  // namespace saker::engine
