// SPDX-License-Identifier: Apache-2.0
#pragma once

// Texts that an answer may be, as bits over a tokenizer's tokens, by the library llguidance: JSON
// schemas, regular expressions, and grammars in its dialect of Lark
// (https://github.com/guidance-ai/llguidance/blob/main/docs/syntax.md). Constraints come from
// strangers: making one and each step are bounded in time and memory
// (docs/adr/0061-constraints.md).

#include "saker/text/tokenizer.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

struct SakerRsConstraint;
struct SakerRsTokenTrie;

namespace saker::text {

enum class ConstraintKind : std::uint8_t { kJsonSchema, kRegex, kGrammar };

// A tokenizer's tokens as a trie of bytes, which its constraints share. Immutable; any thread may
// use it. Takes about a second to make for the largest vocabularies.
class TokenTrie {
 public:
  // `ends`: tokens that end an answer. Throws kUnsupported for a vocabulary beyond the bounds.
  TokenTrie(const Tokenizer& tokenizer, std::span<const std::int32_t> ends);

  const SakerRsTokenTrie& rust() const { return *rust_; }

 private:
  std::shared_ptr<const SakerRsTokenTrie> rust_;
};

// A constraint, and the text so far. One thread at a time.
class Constraint {
 public:
  // Throws kInvalidArgument for a text that is no schema, expression or grammar, that asks for what
  // llguidance lacks, or that takes too much time or memory. `what` names it in messages.
  Constraint(
      const TokenTrie& trie, ConstraintKind kind, std::string_view text, std::string_view what
  );

  // Writes a bit per token, see sample::TokenMask. Returns true if the text may end here. Throws
  // kInvalidArgument when it takes too much time or memory; nothing may follow.
  bool fill(std::span<std::uint32_t> bits);

  // Bytes with which every text goes on, perhaps not all of them. Throws as `fill`.
  std::string forced_bytes();

  // Returns false if the text is complete: nothing may follow. Throws kInvalidArgument for a token
  // that the mask forbids.
  bool accept(std::int32_t token);

 private:
  struct Free {
    void operator()(SakerRsConstraint* rust) const;
  };

  std::unique_ptr<SakerRsConstraint, Free> rust_;
  std::string what_;
};

}  // namespace saker::text
