// SPDX-License-Identifier: Apache-2.0
#pragma once

// Changes of raw logits before sampling, in mlx-lm's order: logit_bias, then the repetition,
// presence and frequency penalties, each over the last context_size tokens of prompt and answer (0:
// all of them). One object per sequence, used by one thread; it only keeps scratch memory.

#include "saker/sample/options.h"

#include <cstdint>
#include <span>
#include <vector>

namespace saker::sample {

class Processors {
 public:
  // Whether any processor is on.
  static bool needed(const SamplingOptions& options);

  // `context`: prompt and answer so far; ids beyond the row are skipped.
  void apply(
      const SamplingOptions& options, std::span<const std::int32_t> context, std::span<float> logits
  );

 private:
  // Counts the ids of the last `size` tokens into counts_ and lists them once each in seen_.
  void count(std::span<const std::int32_t> context, int size, std::size_t vocab_size);
  void forget();

  std::vector<std::int32_t> counts_;  // By id; all 0 between calls.
  std::vector<std::size_t> seen_;
};

}  // namespace saker::sample
