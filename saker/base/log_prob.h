// SPDX-License-Identifier: Apache-2.0
#pragma once

// Log-probabilities from one row of raw float32 logits: sums in float64, in a fixed order, so that
// a row's result has the same bits wherever it is computed. NaN counts as -infinity everywhere.
// Rows may be long (vocabularies of 262k): all but `top_tokens` are a few passes that vectorise.

#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

namespace saker {

// The largest logit; -infinity when there is none.
float max_logit(std::span<const float> logits);
// The id of the largest logit, the lowest such id. REQUIRES: not empty; a row without a finite
// logit gives 0.
std::int32_t best_token(std::span<const float> logits);
// log(sum(exp(logits))): -infinity for a row without finite logits, infinity where a logit is
// infinite.
double log_sum_exp(std::span<const float> logits);
// The log-probability of one id given the row's `log_sum_exp`; NaN where the distribution is
// undefined.
double log_prob(std::span<const float> logits, std::int32_t id, double log_sum);
// The `count` best ids (fewer in a short row) with their log-probabilities, best first; ties: the
// lower id first.
std::vector<std::pair<std::int32_t, double>> top_tokens(
    std::span<const float> logits, int count, double log_sum
);

}  // namespace saker
