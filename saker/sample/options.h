// SPDX-License-Identifier: Apache-2.0
#pragma once

// How a token is chosen from logits: processors on raw logits, then filters on log-probabilities,
// in mlx-lm's order. Names are those of the command line and JSON. Defaults: greedy, no penalties.

#include <cstdint>
#include <map>

namespace saker::sample {

struct SamplingOptions {
  double temperature = 0.0;  // 0: the most probable token.
  double top_p = 1.0;        // Keeps the smallest set with this mass; 0 or 1: off.
  double min_p = 0.0;        // Removes tokens below this share of the best one's probability.
  int min_tokens_to_keep = 1;
  int top_k = 0;  // 0: off.
  double xtc_probability = 0.0;
  double xtc_threshold = 0.1;
  double repetition_penalty =
      1.0;  // 1: off. Divides positive and multiplies negative logits of recent tokens.
  int repetition_context_size = 20;
  double presence_penalty = 0.0;
  int presence_context_size = 20;
  double frequency_penalty = 0.0;
  int frequency_context_size = 20;
  std::map<std::int32_t, double> logit_bias = {};
  std::uint64_t seed = 0;
};

// Throws kInvalidArgument naming the option, its value and its range.
void check_options(const SamplingOptions& options, int vocab_size);

}  // namespace saker::sample
