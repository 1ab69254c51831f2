// SPDX-License-Identifier: Apache-2.0
#pragma once

// The attention mask over rows that are all kept, for programs that compute attention themselves.
// cache::causal_mask (cache/attention_inputs.h) makes the boolean array. Pure; MLX's rules for
// threads.

#include "saker/caches/cache.h"

#include <cstdint>
#include <optional>

namespace saker::caches {

// The mask of n new rows after `offset` earlier ones, by mlx-lm's rule. With a window it is always
// an array; else none for one row, causal for more. A window of 0 or less hides no earlier row.
// Throws kInvalidArgument unless n is at least 1, `offset` at least 0, and their sum below 2^31.
Mask create_attention_mask(
    int n,
    std::int64_t offset,
    std::optional<int> window = std::nullopt,
    MaskForm form = MaskForm::kAny
);

}  // namespace saker::caches
