// SPDX-License-Identifier: Apache-2.0
#pragma once

// A folder's chat templates as a GGUF file's keys "tokenizer.chat_template" and
// "tokenizer.chat_template.<name>". Pure; any thread.

#include "saker/load/export/gguf_metadata.h"
#include "saker/text/model_texts.h"
#include "saker/text/tokenizer_config.h"

namespace saker::load::gguf {

// Takes the files in the order of text::ChatTemplate::load. Empty without a template. Throws
// kCorruptData for values that are no templates.
Metadata template_metadata(const text::ModelTexts& texts, const text::TokenizerConfig& config);

}  // namespace saker::load::gguf
