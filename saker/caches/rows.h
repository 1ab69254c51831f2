// SPDX-License-Identifier: Apache-2.0
#pragma once

// Shared code of the kinds that hold keys and values: checks, and masks of padded batches.

#include "saker/caches/cache.h"
#include "saker/caches/row_buffer.h"

#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace saker::caches {

// Throws kInvalidArgument unless keys and values have the same batch, heads and rows, and fit the
// rows in `buffer`, if any (batch 1 fits all). `position` plus their number must stay within 32
// bits.
void check_update(
    std::string_view kind,
    const mx::array& keys,
    const mx::array& values,
    const Parts& buffer,
    std::int64_t position
);
// Throws kCorruptData unless there are no arrays, or keys and values of rank 4 that agree, followed
// by `more` other arrays.
void check_pair(std::string_view kind, const std::vector<mx::array>& arrays, std::size_t more = 0);

// Boolean [B, 1, n, offset + n]: causal, within the window (if any), between each row's left and
// right padding.
mx::array batch_causal_mask(
    int n,
    int offset,
    std::optional<int> window,
    std::span<const int> left_padding,
    std::span<const int> right_padding = {}
);

// int32 [n]
mx::array to_array(std::span<const int> values);
std::vector<int> to_ints(const mx::array& array, std::string_view what);

// Rotates each batch row's rows to the right by its shift.
Parts rolled(const Parts& parts, std::span<const int> shifts);
Parts taken(const Parts& parts, std::span<const int> batch_rows);
// Throws kInvalidArgument for indices that are no batch row.
void check_indices(std::span<const int> indices, int batch);

}  // namespace saker::caches
