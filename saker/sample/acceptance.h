// SPDX-License-Identifier: Apache-2.0
#pragma once

// Speculative sampling by rejection (Leviathan and others 2023, https://arxiv.org/abs/2211.17192;
// Chen and others 2023, https://arxiv.org/abs/2302.01318). A token drawn from the draft's
// distribution q stays with probability min(1, p / q); otherwise one drawn from max(p - q, 0)
// replaces it. The result has the target's distribution p for any q; which token it is depends on
// q.

#include "saker/sample/noise.h"

#include <cstdint>
#include <span>
#include <vector>

namespace saker::sample {

struct Outcome {
  double probability = 0.0;  // Above 0.
  std::int32_t id = 0;
};

// The tokens that may be chosen, by ascending id; probabilities sum to 1.
using Distribution = std::vector<Outcome>;

// The token that this noise draws. Weights need not sum to 1. REQUIRES: not empty.
std::int32_t draw(std::span<const Outcome> outcomes, const Noise& noise);

// Returns `draft` if `uniform` in (0, 1) accepts it, else a token drawn from max(p - q, 0).
// REQUIRES: `draft` was drawn from `q`, independently of `uniform` and `noise`.
std::int32_t accept_or_resample(
    const Distribution& p,
    const Distribution& q,
    std::int32_t draft,
    double uniform,
    const Noise& noise
);

}  // namespace saker::sample
