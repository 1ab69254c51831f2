// SPDX-License-Identifier: Apache-2.0
#pragma once

// Teacher-forced log-probabilities: how probable each token of a given sequence was after the
// tokens before it. Memory is bounded: hidden rows of one prefill step and logits of kScoreRows
// rows exist at a time, whatever the length and the vocabulary. Sums are float64. REQUIRES: called
// on the thread that owns MLX.

#include "saker/models/model.h"
#include "saker/score/next_distribution.h"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace saker::score {

// Rows of logits that exist at a time.
inline constexpr int kScoreRows = 64;

struct ScorePlan {
  int first_scored =
      1;  // Tokens before this one are only seen. The first token of a sequence is never scored.
  int top_k = 0;  // > 0: the distribution after the last token.
  int prefill_step = 512;
  int kv_bits = kernels::kUnquantizedBits;  // See models::CacheOptions.
};

struct TokenScores {
  std::vector<std::optional<double>> logprobs;  // One per token; none where not scored.
  double sum = 0.0;
  double mean = 0.0;      // 0 without scored tokens.
  bool is_greedy = true;  // Every scored token was the most probable one, lower ids first.
  std::optional<NextDistribution> next;
};

// Throws kInvalidArgument for an empty or too long sequence and for ids out of range.
TokenScores score_tokens(
    const models::Model& model, std::span<const std::int32_t> tokens, const ScorePlan& plan
);

}  // namespace saker::score
