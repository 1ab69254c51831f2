// SPDX-License-Identifier: Apache-2.0
#pragma once

// Speculative sampling by rejection (Leviathan and others 2023, https://arxiv.org/abs/2211.17192;
// Chen and others 2023, https://arxiv.org/abs/2302.01318): a token drawn from the draft's
// distribution q stays with probability min(1, p / q), otherwise one of max(p - q, 0) comes
// instead. What comes out has the distribution p of the target, whatever q is; which token it is
// depends on q.

#include "saker/sample/noise.h"

#include <cstdint>
#include <span>
#include <vector>

namespace saker::sample {

struct Outcome {
  double probability = 0.0;  // Above 0.
  std::int32_t id = 0;
};

// What may be chosen, by ascending id; probabilities sum to 1.
using Distribution = std::vector<Outcome>;

// The token that this noise draws. Weights need not sum to 1. REQUIRES: not empty.
std::int32_t draw(std::span<const Outcome> outcomes, const Noise& noise);

// The draft's token where it is accepted, which `uniform` in (0, 1) decides, or one of what p has
// above q. REQUIRES: `draft` was drawn from `q`, independently of `uniform` and `noise`.
std::int32_t accept_or_resample(
    const Distribution& p,
    const Distribution& q,
    std::int32_t draft,
    double uniform,
    const Noise& noise
);

}  // namespace saker::sample
