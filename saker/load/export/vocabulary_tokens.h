// SPDX-License-Identifier: Apache-2.0
#pragma once

// The tokens of a model folder in the order of their ids, with the types of GGUF files. Ids without
// a token get an unused one, "[PAD7]", as llama.cpp's converter writes them. Pure; any thread.

#include "saker/base/json/json.h"
#include "saker/load/gguf/gguf_vocabulary.h"
#include "saker/text/tokenizer.h"
#include "saker/text/tokenizer_config.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace saker::load::gguf {

// Most tokens of a vocabulary that is written.
inline constexpr std::int64_t kMostTokens = std::int64_t{1} << 20;

struct FileToken {
  std::string text;
  TokenKind kind = TokenKind::kUnused;
};

struct FileTokens {
  std::vector<FileToken> list;  // By id.
  std::size_t left_out = 0;     // Tokens whose ids the model has no rows for.
  std::size_t with_flags = 0;   // Added tokens that take spaces around them, or whole words only.
};

struct TokenSources {
  const Json& tokenizer;  // The content of tokenizer.json.
  const text::TokenizerConfig& config;
  const text::Tokenizer& engine;  // Built of both.
};

// `rows`: the model's tokens. Throws kCorruptData for ids that are none or that two texts share,
// kUnsupported for several tokens of one text, and for more than kMostTokens.
FileTokens file_tokens(const TokenSources& sources, std::int64_t rows);

}  // namespace saker::load::gguf
