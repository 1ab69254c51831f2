// SPDX-License-Identifier: Apache-2.0
#pragma once

// Decides which tokens may be sampled: top_p, min_p, xtc and top_k, in mlx-lm's order. They work on
// log-probabilities that are normalised once, not again between filters.
//
//   top_p  keeps x where the mass of tokens strictly above x is below p: the smallest set with
//          mass p, ties included
//   min_p  removes x < max(x) + log(min_p), but never the best min_tokens_to_keep
//   xtc    with P = softmax over what is left: removes all P_i > min{P_i : P_i > threshold}, but
//          never exempt ids
//   top_k  keeps the k best; ties: the lower ids
//
// Rows may be long and results short, so selection goes down from the best token in bands and never
// sorts a whole row.

#include "saker/sample/options.h"

#include <cstdint>
#include <span>
#include <vector>

namespace saker::sample {

struct Candidate {
  float log_prob = 0.0F;
  std::int32_t id = 0;
};

// True if any filter is on; the xtc draw counts as on.
bool filters_needed(const SamplingOptions& options);

// The tokens that survive, by ascending id. `log_probs`: no NaN, at least one finite; `max` is the
// largest. `xtc`: this position's draw applies the filter; `xtc_exempt` is sorted.
std::vector<Candidate> filter(
    const SamplingOptions& options,
    std::span<const float> log_probs,
    float max,
    bool xtc,
    std::span<const std::int32_t> xtc_exempt
);

}  // namespace saker::sample
