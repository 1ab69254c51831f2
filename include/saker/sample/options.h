// SPDX-License-Identifier: Apache-2.0
#pragma once

// Options for choosing a token from logits: processors on raw logits, then filters on
// log-probabilities, in mlx-lm's order. Names are those of the command line and JSON. Defaults:
// greedy, no penalties.

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace saker::sample {

// How a token is chosen.
struct SamplingOptions {
  double temperature = 0.0;  // 0: the most probable token.
  double top_p = 1.0;        // Keeps the smallest set with this mass; 0 or 1: off.
  double min_p = 0.0;        // Removes tokens below this share of the best one's probability.
  int min_tokens_to_keep = 1;
  int top_k = 0;             // 0: off.
  double top_n_sigma = 0.0;  // Keeps logits this many standard deviations below the best; 0: off.
  double typical_p = 1.0;    // Keeps the tokens of about the expected surprise; 0 or 1: off.
  double xtc_probability = 0.0;  // Chance to exclude top choices.
  double xtc_threshold = 0.1;    // Least probability of a top choice.
  double dynatemp_range = 0.0;   // Largest distance of the temperature from `temperature`; 0: off.
  double dynatemp_exponent = 1.0;
  double repetition_penalty =
      1.0;  // 1: off. Divides positive and multiplies negative logits of recent tokens.
  int repetition_context_size = 20;  // Recent tokens that count; 0: all.
  double presence_penalty = 0.0;     // Subtracted once.
  int presence_context_size = 20;
  double frequency_penalty = 0.0;  // Subtracted per occurrence.
  int frequency_context_size = 20;
  double dry_multiplier = 0.0;  // 0: off. A repetition's next token loses dry_multiplier *
  double dry_base = 1.75;       // dry_base^(length - dry_allowed_length),
  int dry_allowed_length = 2;   // if `length` repeated tokens are at least this many.
  int dry_context_size = 0;     // Recent tokens that count; 0: all.
  // A token whose text contains one of these ends a repetition.
  std::vector<std::string> dry_sequence_breakers = {"\n", ":", "\"", "*"};
  int min_tokens = 0;  // Stop tokens are excluded before this many tokens.
  std::map<std::int32_t, double> logit_bias = {};  // Added to logits, by id.
  std::vector<std::int32_t> suppress_tokens = {};  // Never chosen; ids beyond the row are skipped.
  std::uint64_t seed = 0;

  bool operator==(const SamplingOptions&) const = default;
};

// Token ids of one request that options refer to.
struct NamedTokens {
  std::vector<std::int32_t> xtc_exempt = {};    // Never removed by xtc: line break and EOS.
  std::vector<std::int32_t> dry_breakers = {};  // End repetitions for dry.
  std::vector<std::int32_t> stop_tokens = {};   // Excluded by min_tokens.
  std::size_t prompt_size = 0;                  // The answer begins here in the context.
};

// Throws kInvalidArgument naming the option, its value and its range.
void check_options(const SamplingOptions& options, int vocab_size);

}  // namespace saker::sample
