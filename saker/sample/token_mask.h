// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which tokens may come next in an answer, as a state that each chosen token advances. A mask comes
// before all processors of logits; log-probabilities are reported from the logits before it.
// Threading: one thread at a time.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace saker::sample {

class TokenMask {
 public:
  TokenMask() = default;
  TokenMask(const TokenMask&) = delete;
  TokenMask& operator=(const TokenMask&) = delete;
  virtual ~TokenMask() = default;

  // Writes a bit per token, bit i % 32 of word i / 32: set if the token may come next. Returns true
  // if the answer may end here instead. Throws when its work exceeds its bounds.
  virtual bool fill(std::span<std::uint32_t> bits) = 0;

  // Tokens that probably come next, since nothing else may: a guess, for drafts.
  virtual std::vector<std::int32_t> forced() { return {}; }

  // Takes the chosen token. Returns false if nothing may follow it.
  virtual bool accept(std::int32_t token) = 0;
};

// The answer of a mask for the next token.
struct FilledMask {
  std::vector<std::uint32_t> bits;  // See TokenMask::fill.
  bool may_end = false;
};

// Asks the mask for a vocabulary of this size. Throws as TokenMask::fill.
void fill_mask(TokenMask& mask, std::size_t vocab_size, FilledMask& filled);

// Lowers the logits [vocab_size] of tokens that may not come next to minus infinity. Returns false,
// with the logits unchanged, if no token may come and the answer has to end. Throws
// kInvalidArgument if it may not end either.
bool apply_mask(const FilledMask& mask, std::span<float> logits);

}  // namespace saker::sample
