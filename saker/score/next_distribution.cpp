// SPDX-License-Identifier: Apache-2.0
#include "saker/score/next_distribution.h"

#include "saker/base/log_prob.h"
#include "saker/base/portable_math.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

namespace saker::score {

namespace {

constexpr double kSmallestTail = 1e-12;

}  // namespace

double NextDistribution::tail_mass() const {
  if (!tail_logprob || tail_underflow) {
    return 0.0;
  }
  return std::isnan(*tail_logprob) ? *tail_logprob : portable_exp(*tail_logprob);
}

NextDistribution next_distribution(std::span<const float> logits, int top_k) {
  return next_distribution(logits, top_k, log_sum_exp(logits));
}

NextDistribution next_distribution(std::span<const float> logits, int top_k, double log_sum) {
  NextDistribution next;
  next.vocab_size = static_cast<int>(logits.size());
  for (const auto& [id, logprob] : top_tokens(logits, top_k, log_sum)) {
    next.token_ids.push_back(id);
    next.logprobs.push_back(logprob);
  }
  if (next.token_ids.size() == logits.size()) {
    return next;
  }
  std::vector<float> others(logits.begin(), logits.end());
  for (const std::int32_t id : next.token_ids) {
    others[static_cast<std::size_t>(id)] = -std::numeric_limits<float>::infinity();
  }
  const double tail_sum = log_sum_exp(others);
  const bool unknown = std::isinf(tail_sum) &&
                       std::ranges::any_of(others, [](float logit) { return std::isnan(logit); });
  if (unknown || !std::isfinite(log_sum)) {
    next.tail_logprob = std::numeric_limits<double>::quiet_NaN();
    return next;
  }
  const double tail = tail_sum - log_sum;
  next.tail_underflow = portable_exp(tail) <= kSmallestTail;
  next.tail_logprob = next.tail_underflow ? 0.0 : tail;
  return next;
}

}  // namespace saker::score
