// SPDX-License-Identifier: Apache-2.0
#pragma once

// Text to token ids and back. Runs the `tokenizers` engine on a model's tokenizer.json and on the
// tokens that files beside it add. Ids and text equal those of transformers' AutoTokenizer over
// that pipeline (docs/adr/0032-tokens-of-other-files.md). Immutable; any thread may call any
// member.
//
// Files come from strangers: loading, encoding and decoding are bounded in time and memory
// (docs/adr/0040-bounds-by-the-allocator.md). Beyond the bounds, loading throws kCorruptData,
// encoding and decoding kInvalidArgument. All throw kCapacity if the machine has no memory.

#include "saker/text/model_texts.h"
#include "saker/text/tokenizer_config.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

struct SakerRsTokenizer;

namespace saker::text {

// Texts up to this size are encoded whole, whatever the options say.
inline constexpr std::size_t kWholeTextBytes = std::size_t{1} << 18;

// How a text is encoded.
struct EncodeOptions {
  bool add_special_tokens = true;  // Tokens of the post-processor, such as BOS.
  // Limit for longer texts: once there are more tokens, the rest may be left out.
  std::size_t most_tokens = std::numeric_limits<std::size_t>::max();
};

// A text in which parts stand for tokens. Elsewhere names of tokens are text.
struct MarkedText {
  // Bytes from `begin` to before `end` are the token `id`.
  struct Mark {
    std::size_t begin = 0;
    std::size_t end = 0;
    std::int32_t id = 0;
  };

  std::string text;
  std::vector<Mark> marks;  // Ascending and apart.

  // Appends text.
  void add(std::string_view part) { text += part; }

  // Appends a token that is shown as `name`.
  void add_token(std::string_view name, std::int32_t id) {
    marks.push_back({.begin = text.size(), .end = text.size() + name.size(), .id = id});
    text += name;
  }
};

// Two texts as the tokenizer joins them for models that judge a pair.
struct TextPair {
  std::vector<std::int32_t> ids;
  std::vector<std::int32_t> types;  // By token.
  // The second text's own tokens, which follow each other.
  int second_begin = 0;
  int second_end = 0;
};

// How ids are decoded.
struct DecodeOptions {
  bool skip_special_tokens = false;  // Leaves out tokens that are marked special.
};

// A model's tokenizer.
class Tokenizer {
 public:
  // Reads tokenizer.json of `texts`. No other file is needed; missing or damaged ones are ignored.
  // Throws kNotFound or kCorruptData.
  static std::shared_ptr<const Tokenizer> load(const ModelTexts& texts);
  // As above, with the other files already read. vocab.json and merges.txt may replace
  // tokenizer.json (vocabulary_files.h).
  static std::shared_ptr<const Tokenizer> load(
      const ModelTexts& texts, const TokenizerConfig& config
  );
  // Null if the folder has neither.
  static std::shared_ptr<const Tokenizer> load_if_present(
      const ModelTexts& texts, const TokenizerConfig& config
  );
  // From the content of a tokenizer.json; `what` names it in messages.
  static std::shared_ptr<const Tokenizer> parse(std::string_view json, std::string_view what);
  // As above, with the other files already read.
  static std::shared_ptr<const Tokenizer> parse(
      std::string_view json, std::string_view what, const TokenizerConfig& config
  );

  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;
  // Frees the engine.
  ~Tokenizer();

  // Throws kInvalidArgument, naming the byte, when the text is not UTF-8.
  std::vector<std::int32_t> encode(std::string_view text, EncodeOptions options = {}) const;
  // As above; `options.most_tokens` is not used.
  std::vector<std::int32_t> encode(const MarkedText& text, EncodeOptions options = {}) const;
  // Both texts with the special tokens of a pair. Throws as `encode`.
  TextPair encode_pair(std::string_view first, std::string_view second) const;
  // Throws kInvalidArgument for an id without a token.
  std::string decode(std::span<const std::int32_t> ids, DecodeOptions options = {}) const;

  // Number of tokens, added ones included. Ids may have gaps, and a model may have more rows.
  int vocab_size() const { return vocab_size_; }

  // The id of a token as the vocabulary writes it.
  std::optional<std::int32_t> token_id(std::string_view piece) const;
  // The token as the vocabulary writes it. Throws kInvalidArgument for an id without a token.
  std::string token_piece(std::int32_t id) const;
  // The token's part of a text, perhaps a part of a character; a special token's name. Empty for
  // an id without a token.
  std::string token_bytes(std::int32_t id) const;
  // True for an id with a token.
  bool has_token(std::int32_t id) const;
  // True if the token is marked special; false for ids without a token.
  bool is_special(std::int32_t id) const;

  // A line about tokens that other files list with wrong ids; empty without such tokens.
  std::string moved_tokens() const;

  // For Detokenizer.
  const SakerRsTokenizer& rust() const { return *rust_; }

 private:
  explicit Tokenizer(SakerRsTokenizer* rust);

  std::optional<std::string> find_piece(std::int32_t id) const;
  void require_token(bool exists, std::int32_t id) const;

  SakerRsTokenizer* rust_;  // Owned.
  int vocab_size_;
};

}  // namespace saker::text
