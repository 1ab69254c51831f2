// SPDX-License-Identifier: Apache-2.0
#pragma once

// How a token is chosen from logits: processors on raw logits, then filters on log-probabilities,
// in mlx-lm's order. Names are those of the command line and JSON. Defaults: greedy, no penalties.

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace saker::sample {

struct SamplingOptions {
  double temperature = 0.0;  // 0: the most probable token.
  double top_p = 1.0;        // Keeps the smallest set with this mass; 0 or 1: off.
  double min_p = 0.0;        // Removes tokens below this share of the best one's probability.
  int min_tokens_to_keep = 1;
  int top_k = 0;             // 0: off.
  double top_n_sigma = 0.0;  // Keeps logits so many standard deviations below the best; 0: off.
  double typical_p = 1.0;    // Keeps the tokens of about the expected surprise; 0 or 1: off.
  double xtc_probability = 0.0;
  double xtc_threshold = 0.1;
  double dynatemp_range = 0.0;  // The temperature is up to so far from `temperature`; 0: off.
  double dynatemp_exponent = 1.0;
  double repetition_penalty =
      1.0;  // 1: off. Divides positive and multiplies negative logits of recent tokens.
  int repetition_context_size = 20;
  double presence_penalty = 0.0;
  int presence_context_size = 20;
  double frequency_penalty = 0.0;
  int frequency_context_size = 20;
  double dry_multiplier = 0.0;  // 0: off. Subtracted from what would prolong a repetition,
  double dry_base = 1.75;       // times this to the power of the repeated tokens
  int dry_allowed_length = 2;   // beyond these.
  int dry_context_size = 0;
  int min_tokens = 0;  // The answer does not end before.
  std::map<std::int32_t, double> logit_bias = {};
  std::vector<std::int32_t> suppress_tokens = {};  // Never chosen; ids beyond the row are skipped.
  std::uint64_t seed = 0;
};

// Token ids of one request that options speak of.
struct NamedTokens {
  std::vector<std::int32_t> xtc_exempt = {};    // What xtc never removes: line break and EOS.
  std::vector<std::int32_t> dry_breakers = {};  // Where repetitions end, for dry.
  std::vector<std::int32_t> stop_tokens = {};   // What min_tokens keeps away.
  std::size_t prompt_size = 0;                  // Of the context, where the answer begins.
};

// Throws kInvalidArgument naming the option, its value and its range.
void check_options(const SamplingOptions& options, int vocab_size);

}  // namespace saker::sample
