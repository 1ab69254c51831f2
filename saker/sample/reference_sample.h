// SPDX-License-Identifier: Apache-2.0
#pragma once

// The reference for a sampled token, computed exactly as sampler.h defines it.

#include "saker/sample/acceptance.h"
#include "saker/sample/noise.h"
#include "saker/sample/options.h"

#include <cstdint>
#include <span>

namespace saker::sample {

// Below this temperature, noise is smaller than the rounding of scores: greedy.
inline constexpr double kColdest = 1e-6;

// True if an option is on that fast_sampler.h does not support.
bool only_exact(const SamplingOptions& options);

// `logits`: processed; `max`: the largest one, finite. Overwrites `logits` with log-probabilities.
// `xtc`: this position's draw applies that filter; `xtc_exempt` is sorted.
std::int32_t choose_exactly(
    const SamplingOptions& options,
    std::span<float> logits,
    float max,
    const Noise& noise,
    bool xtc,
    std::span<const std::int32_t> xtc_exempt
);

// The distribution that choose_exactly draws from. Overwrites `logits` with log-probabilities.
Distribution exact_distribution(
    const SamplingOptions& options,
    std::span<float> logits,
    float max,
    bool xtc,
    std::span<const std::int32_t> xtc_exempt
);

}  // namespace saker::sample
