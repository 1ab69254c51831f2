// SPDX-License-Identifier: Apache-2.0
#pragma once

// Changes raw logits before sampling, in mlx-lm's order. First logit_bias; then the repetition,
// presence and frequency penalties and dry (repeats.h), each over the last context_size tokens of
// prompt and answer (0: all). Last min_tokens and suppress_tokens, which exclude tokens. One object
// per sequence, used by one thread; its state only saves work.

#include "saker/sample/options.h"
#include "saker/sample/token_counts.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>

namespace saker::sample {

class Processors {
 public:
  // True if any processor is on.
  static bool needed(const SamplingOptions& options);

  // `tokens.dry_breakers` is sorted. `context`: prompt and answer so far; ids beyond the row are
  // skipped.
  void apply(
      const SamplingOptions& options,
      const NamedTokens& tokens,
      std::span<const std::int32_t> context,
      std::span<float> logits
  );

 private:
  void penalise(
      const SamplingOptions& options, std::span<const std::int32_t> context, std::span<float> logits
  );
  const TokenCounts& counts(
      std::span<const std::int32_t> context, int size, std::size_t vocab_size
  );

  std::map<int, TokenCounts> counts_;  // By window size.
};

}  // namespace saker::sample
