// SPDX-License-Identifier: Apache-2.0
#pragma once

// Converts a GGUF file's vocabulary to the files of a model folder: tokenizer.json for the
// `tokenizers` engine, tokenizer_config.json (names of special tokens) and the chat template. Two
// kinds exist. Byte-level BPE ("gpt2") splits words by patterns that the file names
// (tokenizer.ggml.pre). In SentencePiece's BPE ("llama") the merges follow from the pieces' scores.

#include "saker/base/json/json.h"
#include "saker/load/gguf/gguf_file.h"

#include <map>
#include <string>
#include <vector>

namespace saker::load::gguf {

struct TokenizerFiles {
  std::map<std::string, std::string> texts;  // By file name; empty without a vocabulary.
  std::vector<std::string> notes;
};

// Throws kUnsupported, naming it, for another kind of vocabulary or pattern, and kCorruptData for
// lists that don't fit together.
TokenizerFiles tokenizer_files(const Header& header);

// Adds `bos_token_id`, and `eos_token_id` with all tokens that end an answer.
void add_token_ids(const Header& header, Json& config);

}  // namespace saker::load::gguf
