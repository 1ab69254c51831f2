// SPDX-License-Identifier: Apache-2.0
#pragma once

// Converts a model folder's tokenizer and chat templates to a GGUF file's metadata. It is the
// inverse of gguf_tokenizer.h, with the keys and types of llama.cpp's convert_hf_to_gguf.py. BPE of
// bytes becomes a vocabulary "gpt2". BPE of pieces with bytes as a fallback becomes one of
// SentencePiece, "llama". Pure; any thread.

#include "saker/base/json/json.h"
#include "saker/load/export/gguf_metadata.h"
#include "saker/load/export/model_metadata.h"
#include "saker/text/model_texts.h"

#include <string>
#include <vector>

namespace saker::load::gguf {

struct VocabularyMetadata {
  Metadata pairs;
  std::vector<std::string> notes;  // One line each: what a GGUF file says otherwise.
};

// `config` is the folder's config.json. A model without a tokenizer gets an empty vocabulary.
// Throws kUnsupported for tokenizers that GGUF files cannot describe, and kCorruptData for broken
// files, as text::Tokenizer::load does.
VocabularyMetadata vocabulary_metadata(
    const text::ModelTexts& texts, const Json& config, const ModelMetadata& model
);

}  // namespace saker::load::gguf
