// SPDX-License-Identifier: Apache-2.0
#pragma once

// Shared code of the two batch kinds: per-row integers on the host, and rows side by side.

#include "saker/caches/batch.h"
#include "saker/caches/row_buffer.h"

#include <cstddef>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace saker::caches {

std::vector<int> negated(std::span<const int> values);
// values[i] += sign * others[i]
void add_to(std::vector<int>& values, std::span<const int> others, int sign);
// Appends: first + by_first, then second + by_second.
void append_to(std::vector<int>& first, int by_first, std::span<const int> second, int by_second);
std::vector<int> chosen(std::span<const int> values, std::span<const int> indices);
// True if a value is above 0.
bool has_any(std::span<const int> values);

// Throws kInvalidArgument unless each list is empty or has a value >= 0 for each row. Also throws
// for left padding of a cache that has rows.
void check_padding(std::string_view kind, const Padding& padding, std::size_t batch, bool is_empty);
// Keys and values for this many batch rows; a single batch row is repeated for all. Throws
// kInvalidArgument for other numbers.
Parts for_batch(
    std::string_view kind, const mx::array& keys, const mx::array& values, std::size_t batch
);
// Throws kInvalidArgument unless heads and dimensions agree; an empty side agrees with any.
void check_same_rows(std::string_view kind, const Parts& first, const Parts& second);

// `rows` behind zeros, `count` rows in all. Without `rows` all are zeros, shaped as `like`.
Parts padded_left(const Parts& rows, const Parts& like, int batch, int count);
// Joins two batches along the batch axis.
Parts stacked(const Parts& first, const Parts& second);

// Joins sequences of one batch row each (no parts: no rows) into a batch, and returns its left
// padding. No parts if no sequence has rows. Throws kInvalidArgument for rows that do not agree.
std::pair<Parts, std::vector<int>> merged(std::string_view kind, std::span<const Parts> sequences);

struct BatchState {
  Parts rows;
  std::vector<int> offset;
  std::vector<int> left_padding;
};

// Throws kCorruptData unless there are no arrays, or keys, values, offset and left_padding.
BatchState parse_batch_state(std::string_view kind, std::vector<mx::array> arrays);

}  // namespace saker::caches
