// SPDX-License-Identifier: Apache-2.0
#pragma once

// The definition of a sampled token, computed as it is written in sampler.h.

#include "saker/sample/acceptance.h"
#include "saker/sample/noise.h"
#include "saker/sample/options.h"

#include <cstdint>
#include <span>

namespace saker::sample {

// Below it, noise is smaller than the rounding of scores: greedy.
inline constexpr double kColdest = 1e-6;

// Whether an option is on that fast_sampler.h does not know.
bool only_exact(const SamplingOptions& options);

// `logits`: processed, `max` their largest, finite; log-probabilities afterwards. `xtc`: whether
// this position's draw applies that filter; `xtc_exempt` is sorted.
std::int32_t choose_exactly(
    const SamplingOptions& options,
    std::span<float> logits,
    float max,
    const Noise& noise,
    bool xtc,
    std::span<const std::int32_t> xtc_exempt
);

// The distribution that it chooses from; `logits` are log-probabilities afterwards.
Distribution exact_distribution(
    const SamplingOptions& options,
    std::span<float> logits,
    float max,
    bool xtc,
    std::span<const std::int32_t> xtc_exempt
);

}  // namespace saker::sample
