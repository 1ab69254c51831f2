// SPDX-License-Identifier: Apache-2.0
#pragma once

// Filters that look at the whole row, before the filters of filters.h. Removed tokens become
// -infinity; the rest is not normalised again.
//
//   top_n_sigma  keeps x >= max - n * sigma, sigma being the standard deviation of all finite
//                logits (Tang and others 2024, https://arxiv.org/abs/2411.07641)
//   typical_p    keeps the tokens whose surprise -log p(x) is nearest to its expected value H, the
//                entropy: the smallest such set with mass p, ties included (Meister and others
//                2022, https://arxiv.org/abs/2202.00666)

#include "saker/sample/options.h"

#include <span>
#include <vector>

namespace saker::sample {

bool row_filters_needed(const SamplingOptions& options);

// Applies both, in this order; returns the largest remaining value. `log_probs`: no NaN; `max` is
// the largest one, finite.
float filter_row(const SamplingOptions& options, std::span<float> log_probs, float max);

}  // namespace saker::sample
