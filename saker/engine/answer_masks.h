// SPDX-License-Identifier: Apache-2.0
#pragma once

// Makes the masks of requests' constraints, of forced calls and strict tools, and of budgets of
// reasoning. Content is constrained from its first token on; reasoning before it is free, and so is
// the token that opens it. The trie of the tokenizer is made
// when the first constraint needs it. Thread-safe.

#include "saker/engine/prompts.h"
#include "saker/engine/request.h"
#include "saker/sample/token_mask.h"
#include "saker/text/constraint.h"

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>

namespace saker::engine {

class AnswerMasks {
 public:
  explicit AnswerMasks(std::shared_ptr<const Prompts> prompts) : prompts_(std::move(prompts)) {}

  // Null without any of these. `prompt`: its ids, whose end tells if the answer begins with
  // reasoning. Throws kInvalidArgument for a constraint that is wrong or exceeds its bounds,
  // kUnsupported without a tokenizer.
  std::unique_ptr<sample::TokenMask> make(
      const Request& request, std::span<const std::int32_t> prompt
  );

 private:
  text::Constraint call_constraint(const Request& request, const text::Tokenizer& tokenizer);
  const text::TokenTrie& trie(const text::Tokenizer& tokenizer);

  std::shared_ptr<const Prompts> prompts_;
  std::mutex mutex_;
  std::optional<text::TokenTrie> trie_;
};

}  // namespace saker::engine
