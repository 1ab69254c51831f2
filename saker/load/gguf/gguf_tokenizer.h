// SPDX-License-Identifier: Apache-2.0
#pragma once

// Converts a GGUF file's vocabulary to the files of a model folder: tokenizer.json for the
// `tokenizers` engine, tokenizer_config.json (names of special tokens) and the chat template. Three
// kinds exist. Byte-level BPE ("gpt2") splits words by patterns that the file names
// (tokenizer.ggml.pre). In SentencePiece's BPE ("llama") the merges follow from the pieces' scores.
// Gemma 4's ("gemma4") has such pieces and lists the merges.

#include "saker/base/json/json.h"
#include "saker/load/gguf/gguf_file.h"
#include "saker/load/gguf/gguf_vocabulary.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace saker::load::gguf {

// Empty for a file without one. REQUIRES: the header outlives it. Throws as Vocabulary, and
// kUnsupported for another kind, naming it.
std::optional<Vocabulary> read_vocabulary(const Header& header);

// Parts of the file's vocabulary that tokenizers do not have, one line each.
std::vector<std::string> vocabulary_notes(
    const Header& header, const std::optional<Vocabulary>& vocabulary
);

// Texts by file name. `vocabulary` is the header's. Throws kUnsupported, naming it, for a pattern
// that we lack, and kCorruptData for lists that don't fit together.
std::map<std::string, std::string> tokenizer_files(
    const Header& header, const Vocabulary& vocabulary
);

// Adds `bos_token_id`, and `eos_token_id` with all tokens that end an answer.
void add_token_ids(const Vocabulary& vocabulary, Json& config);

}  // namespace saker::load::gguf
