// SPDX-License-Identifier: Apache-2.0
#pragma once

// Rows that carry their own number, so that tests can see which ones a cache holds. A row r of head
// h has keys r + h / 8 and values -(r + h / 8) in all elements.

#include "saker/cache/layer_cache.h"

#include <cstdint>
#include <numeric>
#include <vector>

namespace saker::cache {

inline constexpr int kHeads = 2;
inline constexpr int kDim = 4;
inline constexpr int kValueDim = 6;

inline kernels::KvShape test_shape() {
  return {kHeads, kDim, kValueDim, mx::float32};
}

// [1, H, n, dim]
inline mx::array numbered(const std::vector<int>& rows, int dim, float sign) {
  std::vector<float> data;
  for (int head = 0; head < kHeads; ++head) {
    for (const int row : rows) {
      const float value = sign * (static_cast<float>(row) + static_cast<float>(head) / 8.0F);
      data.insert(data.end(), static_cast<std::size_t>(dim), value);
    }
  }
  return mx::array(data.data(), {1, kHeads, static_cast<int>(rows.size()), dim}, mx::float32);
}

inline KeyValues numbered_rows(const std::vector<int>& rows) {
  return {numbered(rows, kDim, 1.0F), numbered(rows, kValueDim, -1.0F)};
}

inline bool same_rows(const KeyValues& got, const std::vector<int>& rows) {
  const auto expected = numbered_rows(rows);
  return got.keys.shape() == expected.keys.shape() &&
         got.values.shape() == expected.values.shape() &&
         mx::array_equal(got.keys, expected.keys).item<bool>() &&
         mx::array_equal(got.values, expected.values).item<bool>();
}

inline std::vector<int> numbers(int first, int count) {
  std::vector<int> rows(static_cast<std::size_t>(count));
  std::iota(rows.begin(), rows.end(), first);
  return rows;
}

// Writes `count` rows as the library API does.
inline KeyValues update(LayerCache& cache, int count) {
  const auto rows = numbered_rows(numbers(static_cast<int>(cache.offset()), count));
  return cache.update(rows.keys, rows.values);
}

// Writes `count` rows as a fused pass does: reserved first, filled later.
inline kernels::AttendSpan pass(LayerCache& cache, int count) {
  const auto rows = numbered_rows(numbers(static_cast<int>(cache.offset()), count));
  auto span = cache.append(0, count);
  auto keys = mx::contiguous(mx::squeeze(rows.keys, 0));
  auto values = mx::contiguous(mx::squeeze(rows.values, 0));
  mx::eval(keys, values);
  span.store->write(span.first_position, keys, values);
  return span;
}

inline std::vector<bool> mask_row(const Mask& mask, int row) {
  auto bits = mx::contiguous(mx::slice(*mask.array, {row, 0}, {row + 1, mask.array->shape(1)}));
  mx::eval(bits);
  return std::vector<bool>(bits.data<bool>(), bits.data<bool>() + bits.size());
}

}  // namespace saker::cache
