// SPDX-License-Identifier: Apache-2.0
#pragma once

// The distribution of the next token: the best candidates and the probability of all others.
// Natural logarithms. Plain C++.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace saker::score {

// The best candidates and the tail.
struct NextDistribution {
  std::vector<std::int32_t> token_ids;  // Best first; ties: the lower id first.
  std::vector<double> logprobs;
  // Log of the probability of all other tokens. None: there are no others. 0.0: they have at most
  // 1e-12 together (then `tail_underflow`). NaN: unknown, because of broken logits.
  std::optional<double> tail_logprob;
  bool tail_underflow = false;
  int vocab_size = 0;

  // Probability of all other tokens together; NaN if unknown.
  double tail_mass() const;

  bool operator==(const NextDistribution&) const = default;
};

// The `top_k` best of one row of logits, or all if there are fewer. The tail is the log-sum-exp of
// the other logits, which rounds better than 1 - sum. NaN counts as -infinity beside finite logits.
// REQUIRES: top_k >= 1.
NextDistribution next_distribution(std::span<const float> logits, int top_k);
// As above, with the row's log-sum-exp `log_sum` known.
NextDistribution next_distribution(std::span<const float> logits, int top_k, double log_sum);

}  // namespace saker::score
