// SPDX-License-Identifier: Apache-2.0
#pragma once

// A GGUF file's vocabulary as the files that a model folder has: tokenizer.json, as the
// `tokenizers` engine reads it, tokenizer_config.json with the names of special tokens, and the
// chat template. Two kinds exist: byte-level BPE ("gpt2"), whose words are cut by patterns that the
// file names (tokenizer.ggml.pre), and SentencePiece's BPE ("llama"), whose merges follow from the
// pieces' scores.

#include "saker/base/json.h"
#include "saker/load/gguf/gguf_file.h"

#include <map>
#include <string>
#include <vector>

namespace saker::load::gguf {

struct TokenizerFiles {
  std::map<std::string, std::string> texts;  // By name; empty for a file without vocabulary.
  std::vector<std::string> notes;
};

// Throws kUnsupported, naming it, for another kind of vocabulary or pattern, and kCorruptData for
// lists that don't fit together.
TokenizerFiles tokenizer_files(const Header& header);

// `bos_token_id`, and `eos_token_id`: all tokens that end an answer.
void add_token_ids(const Header& header, Json& config);

}  // namespace saker::load::gguf
