// SPDX-License-Identifier: Apache-2.0
#pragma once

// The tokens of a GGUF file (`tokenizer.ggml.tokens`, `token_type`), by id and by text.

#include "saker/base/json/json.h"
#include "saker/load/gguf/gguf_file.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
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

// Ids of pieces by their text: one flat table, since each merge is looked up three times. Holds no
// texts: `pieces` are given again, unchanged, with each call.
class PieceIndex {
 public:
  using Pieces = std::vector<std::string_view>;

  // Space for `count` pieces. REQUIRES: count < 2^31.
  explicit PieceIndex(std::size_t count);

  // Adds pieces[id] unless an earlier piece has its text. True if it was added.
  bool add(const Pieces& pieces, std::size_t id);

  // The piece with this text.
  std::optional<std::size_t> find(const Pieces& pieces, std::string_view text) const;

  // Which of these texts are pieces, 1 or 0 for each. Memory is asked for before it is read, many texts
  // at a time.
  std::vector<std::uint8_t> find_each(const Pieces& pieces, std::span<const std::string_view> texts)
      const;

  std::size_t size() const { return size_; }

 private:
  struct Slot {
    std::uint32_t hash = 0;
    std::uint32_t id = 0;  // The piece's id + 1; 0: free.
  };

  // The slot of the text, or the free one where it would be.
  std::size_t slot_of(const Pieces& pieces, std::string_view text, std::uint32_t hash) const;

  std::vector<Slot> slots_;  // A power of two, at least twice as many as pieces.
  std::size_t size_ = 0;
};

// Two pieces that become one.
struct Merge {
  std::string_view left;
  std::string_view right;
};

struct ListedMerges {
  std::vector<Merge> merges;
  std::size_t unknown = 0;  // Left out: the vocabulary lacks their tokens.
};

// Holds views into the file, which must outlive it.
class Vocabulary {
 public:
  // Throws kCorruptData for tokens that are not UTF-8 and lists that don't fit together.
  explicit Vocabulary(const Header& header);

  std::size_t size() const { return tokens_.size(); }

  std::string_view token(std::size_t id) const { return tokens_[id]; }

  TokenKind kind(std::size_t id) const { return kinds_[id]; }

  bool has(std::string_view token) const { return ids_.find(tokens_, token).has_value(); }

  // See PieceIndex::find_each.
  std::vector<std::uint8_t> has_each(std::span<const std::string_view> tokens) const {
    return ids_.find_each(tokens_, tokens);
  }

  // REQUIRES: the vocabulary has the token.
  std::int64_t id(std::string_view token) const {
    return static_cast<std::int64_t>(*ids_.find(tokens_, token));
  }

  // True if no earlier token has the same text; text is never encoded to other tokens.
  bool is_first(std::size_t id) const { return is_first_[id]; }

  std::size_t repeated() const { return tokens_.size() - ids_.size(); }

  // Tokens that end an answer, each once, the file's own first.
  const std::vector<std::size_t>& endings() const { return endings_; }

  // The token that "tokenizer.ggml.<key>" names, if its id exists. Without that key SentencePiece's
  // first tokens are the unknown token, BOS and EOS.
  std::optional<std::size_t> named(std::string_view key) const;

  // `tokenizer.ggml.merges`, in order; read when first asked for, by one thread at a time.
  const ListedMerges& listed_merges() const;

  // In tokenizer.json's form: ids by text, appended to `json`, and the tokens that are matched
  // before anything else.
  void append_ids(std::string& json) const;
  Json added_tokens() const;

 private:
  void read_kinds();

  const Header& header_;
  std::vector<std::string_view> tokens_;
  std::vector<TokenKind> kinds_;
  PieceIndex ids_;
  std::vector<bool> is_first_;
  mutable std::optional<ListedMerges> merges_;
  std::vector<std::size_t> endings_;
};

// Appends a text of UTF-8 as a JSON string.
void append_json_text(std::string& json, std::string_view text);

}  // namespace saker::load::gguf
