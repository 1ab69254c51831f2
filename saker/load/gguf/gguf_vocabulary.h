// SPDX-License-Identifier: Apache-2.0
#pragma once

// The tokens of a GGUF file (`tokenizer.ggml.tokens`, `token_type`), by id and by text.

#include "saker/base/json/json.h"
#include "saker/load/gguf/gguf_file.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace saker::load::gguf {

// A token's kind, from `tokenizer.ggml.token_type` or from its text if that is well known.
enum class TokenKind : std::uint8_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6,
};

// Holds views into the file, which must outlive it.
class Vocabulary {
 public:
  // Throws kCorruptData for tokens that are not UTF-8 and lists that don't fit together.
  explicit Vocabulary(const Header& header);

  std::size_t size() const { return tokens_.size(); }

  std::string_view token(std::size_t id) const { return tokens_[id]; }

  TokenKind kind(std::size_t id) const { return kinds_[id]; }

  bool has(std::string_view token) const { return ids_.contains(token); }

  // REQUIRES: the vocabulary has the token.
  std::int64_t id(std::string_view token) const { return ids_.find(token)->second; }

  // True if no earlier token has the same text; text is never encoded to other tokens.
  bool is_first(std::size_t id) const { return is_first_[id]; }

  std::size_t repeated() const { return tokens_.size() - ids_.size(); }

  // Tokens that end an answer, each once, the file's own first.
  const std::vector<std::size_t>& endings() const { return endings_; }

  // The token that "tokenizer.ggml.<key>" names, if its id exists. Without that key SentencePiece's
  // first tokens are the unknown token, BOS and EOS.
  std::optional<std::size_t> named(std::string_view key) const;

  // In tokenizer.json's form: ids by text, and the tokens that are matched before anything else.
  Json as_object() const;
  Json added_tokens() const;

 private:
  void read_kinds();

  const Header& header_;
  std::vector<std::string_view> tokens_;
  std::vector<TokenKind> kinds_;
  std::unordered_map<std::string_view, std::int64_t> ids_;
  std::vector<bool> is_first_;
  std::vector<std::size_t> endings_;
};

}  // namespace saker::load::gguf
