// SPDX-License-Identifier: Apache-2.0
#include "saker/caches/rows.h"

#include "saker/base/error.h"
#include "saker/cache/attention_inputs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace saker::caches {
namespace {

bool same_rows(const mx::array& keys, const mx::array& values) {
  return keys.ndim() == 4 && values.ndim() == 4 &&
         std::equal(keys.shape().begin(), keys.shape().begin() + 3, values.shape().begin());
}

// True if rows can be written into a buffer.
bool fits(const mx::array& rows, const mx::array& buffer) {
  return (rows.shape(0) == 1 || rows.shape(0) == buffer.shape(0)) &&
         rows.shape(1) == buffer.shape(1) && rows.shape(3) == buffer.shape(3);
}

}  // namespace

void check_update(
    std::string_view kind,
    const mx::array& keys,
    const mx::array& values,
    const Parts& buffer,
    std::int64_t position
) {
  require(
      same_rows(keys, values) && keys.size() > 0 && values.size() > 0,
      ErrorCode::kInvalidArgument,
      "[{}] keys ({}) and values ({}), expected both (B, H_kv, n, D) with n > 0",
      kind,
      fmt::join(keys.shape(), ", "),
      fmt::join(values.shape(), ", ")
  );
  require(
      buffer.empty() || (fits(keys, buffer[0]) && fits(values, buffer[1])),
      ErrorCode::kInvalidArgument,
      "[{}] keys ({}) and values ({}) for a cache of ({}) and ({})",
      kind,
      fmt::join(keys.shape(), ", "),
      fmt::join(values.shape(), ", "),
      buffer.empty() ? 0 : buffer[0].shape(0),
      buffer.empty() ? 0 : buffer[0].shape(1)
  );
  require(
      position >= 0 && position <= INT32_MAX - keys.shape(2),
      ErrorCode::kInvalidArgument,
      "[{}] {} rows at position {} are too many",
      kind,
      keys.shape(2),
      position
  );
}

void check_pair(std::string_view kind, const std::vector<mx::array>& arrays, std::size_t more) {
  require(
      arrays.empty() || (arrays.size() == 2 + more && same_rows(arrays[0], arrays[1])),
      ErrorCode::kCorruptData,
      "[{}] {} arrays, expected none or keys and values of the same rows{}",
      kind,
      arrays.size(),
      more > 0 ? fmt::format(" and {} others", more) : ""
  );
}

mx::array batch_causal_mask(
    int n,
    int offset,
    std::optional<int> window,
    std::span<const int> left_padding,
    std::span<const int> right_padding
) {
  const auto column = [](const mx::array& per_row) {
    return mx::expand_dims(per_row, std::vector<int>{1, 2, 3});  // [B, 1, 1, 1]
  };
  const auto keys = mx::arange(0, offset + n, mx::int32);
  auto mask = mx::logical_and(
      cache::causal_mask(n, offset, window.value_or(0)),
      mx::greater_equal(keys, column(to_array(left_padding)))
  );
  if (!right_padding.empty()) {
    const auto end = mx::subtract(mx::array(offset + n), column(to_array(right_padding)));
    mask = mx::logical_and(mask, mx::less(keys, end));
  }
  return mask;
}

mx::array to_array(std::span<const int> values) {
  return mx::array(values.begin(), {static_cast<int>(values.size())}, mx::int32);
}

std::vector<int> to_ints(const mx::array& array, std::string_view what) {
  require(
      array.ndim() == 1 && array.dtype() == mx::int32,
      ErrorCode::kCorruptData,
      "{} has {} dimensions or another dtype, expected int32 [B]",
      what,
      array.ndim()
  );
  auto dense = mx::contiguous(array);
  dense.eval();
  return {dense.data<int>(), dense.data<int>() + dense.size()};
}

Parts rolled(const Parts& parts, std::span<const int> shifts) {
  Parts result;
  for (const mx::array& part : parts) {
    const int rows = part.shape(2);
    const auto shift = mx::expand_dims(to_array(shifts), std::vector<int>{1, 2, 3});
    const auto row = mx::expand_dims(mx::arange(0, rows, mx::int32), std::vector<int>{0, 1, 3});
    const auto index = mx::remainder(mx::subtract(row, shift), mx::array(rows));  // [B, 1, rows, 1]
    result.push_back(mx::take_along_axis(part, mx::broadcast_to(index, part.shape()), 2));
  }
  return result;
}

Parts taken(const Parts& parts, std::span<const int> batch_rows) {
  Parts result;
  result.reserve(parts.size());
  for (const mx::array& part : parts) {
    result.push_back(mx::take(part, to_array(batch_rows), 0));
  }
  return result;
}

void check_indices(std::span<const int> indices, int batch) {
  for (const int index : indices) {
    require(
        index >= 0 && index < batch, ErrorCode::kInvalidArgument, "batch row {} of {}", index, batch
    );
  }
}

}  // namespace saker::caches
