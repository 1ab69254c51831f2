// SPDX-License-Identifier: Apache-2.0
#pragma once

// Log-probabilities from one row of raw float32 logits. Sums are in float64 and in a fixed order,
// so that a row's result has the same bits everywhere. NaN counts as -infinity. Rows may be long
// (vocabularies of 262k): all functions but `top_tokens` are a few passes that vectorise.

#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

namespace saker {

// The largest logit; -infinity when there is none.
float max_logit(std::span<const float> logits);
// The lowest id with the largest logit. REQUIRES: not empty. A row without a finite logit gives 0.
std::int32_t best_token(std::span<const float> logits);
// log(sum(exp(logits))). It is -infinity for a row without finite logits, and infinity if a logit
// is infinite.
double log_sum_exp(std::span<const float> logits);
// The log-probability of one id, given the row's `log_sum_exp`. NaN if the distribution is
// undefined.
double log_prob(std::span<const float> logits, std::int32_t id, double log_sum);
// The `count` best ids (fewer in a short row) with their log-probabilities, best first. In ties the
// lower id comes first.
std::vector<std::pair<std::int32_t, double>> top_tokens(
    std::span<const float> logits, int count, double log_sum
);

}  // namespace saker
