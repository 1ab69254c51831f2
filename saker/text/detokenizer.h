// SPDX-License-Identifier: Apache-2.0
#pragma once

// Streaming decode of one sequence: the pieces of `add` and `finish`, joined, are exactly
// Tokenizer::decode of all ids. Each piece is valid UTF-8. It holds back only text that a later
// token can still change: an incomplete character, or a run of byte-fallback tokens. The work per
// token does not grow with the sequence. One thread at a time.

#include "saker/text/tokenizer.h"

#include <cstdint>
#include <memory>
#include <string>

struct SakerRsDetokenizer;

namespace saker::text {

class Detokenizer {
 public:
  explicit Detokenizer(const Tokenizer& tokenizer, DecodeOptions options = {});
  Detokenizer(Detokenizer&&) noexcept;
  Detokenizer& operator=(Detokenizer&&) noexcept;
  ~Detokenizer();

  // The text that this token makes final. Models may have more rows than the tokenizer has tokens:
  // ids without a token add nothing, as in `tokenizers`. Throws kInvalidArgument for a negative id.
  std::string add(std::int32_t id);
  // The text still held back. REQUIRES: no add() afterwards.
  std::string finish();

 private:
  struct Free {
    void operator()(SakerRsDetokenizer* rust) const;
  };

  std::unique_ptr<SakerRsDetokenizer, Free> rust_;
};

}  // namespace saker::text
