// SPDX-License-Identifier: Apache-2.0
#include "saker/caches/batch_rows.h"

#include "saker/base/error.h"
#include "saker/caches/rows.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace saker::caches {
namespace {

mx::array zero_rows(const mx::array& like, int batch, int count) {
  mx::Shape shape = like.shape();
  shape[0] = batch;
  shape[kRowAxis] = count;
  return mx::zeros(shape, like.dtype());
}

}  // namespace

std::vector<int> negated(std::span<const int> values) {
  std::vector<int> result;
  for (const int value : values) {
    result.push_back(-value);
  }
  return result;
}

void add_to(std::vector<int>& values, std::span<const int> others, int sign) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] += sign * others[i];
  }
}

void append_to(std::vector<int>& first, int by_first, std::span<const int> second, int by_second) {
  // A copy, because `second` may be `first`.
  const std::vector<int> more(second.begin(), second.end());
  for (int& value : first) {
    value += by_first;
  }
  for (const int value : more) {
    first.push_back(value + by_second);
  }
}

std::vector<int> chosen(std::span<const int> values, std::span<const int> indices) {
  std::vector<int> result;
  for (const int index : indices) {
    result.push_back(values[static_cast<std::size_t>(index)]);
  }
  return result;
}

bool has_any(std::span<const int> values) {
  return std::ranges::any_of(values, [](int value) { return value > 0; });
}

void check_padding(
    std::string_view kind, const Padding& padding, std::size_t batch, bool is_empty
) {
  for (const auto* values : {&padding.left, &padding.right, &padding.lengths}) {
    const bool fits = values->size() == batch &&
                      std::ranges::all_of(*values, [](int value) { return value >= 0; });
    require(
        values->empty() || fits,
        ErrorCode::kInvalidArgument,
        "[{}] padding of {} rows for {}, expected values of at least 0",
        kind,
        values->size(),
        batch
    );
  }
  require(
      padding.left.empty() || is_empty,
      ErrorCode::kInvalidArgument,
      "[{}] left padding goes before the first rows",
      kind
  );
}

Parts for_batch(
    std::string_view kind, const mx::array& keys, const mx::array& values, std::size_t batch
) {
  require(
      keys.shape(0) == 1 || std::cmp_equal(keys.shape(0), batch),
      ErrorCode::kInvalidArgument,
      "[{}] {} batch rows, expected {}",
      kind,
      keys.shape(0),
      batch
  );
  Parts rows = {keys, values};
  for (mx::array& part : rows) {
    mx::Shape shape = part.shape();
    shape[0] = static_cast<int>(batch);
    part = mx::broadcast_to(part, shape);
  }
  return rows;
}

void check_same_rows(std::string_view kind, const Parts& first, const Parts& second) {
  const auto same = [](const mx::array& a, const mx::array& b) {
    return a.shape(1) == b.shape(1) && a.shape(3) == b.shape(3);
  };
  require(
      first.empty() || second.empty() || (same(first[0], second[0]) && same(first[1], second[1])),
      ErrorCode::kInvalidArgument,
      "[{}] rows of other heads or dimensions",
      kind
  );
}

Parts padded_left(const Parts& rows, const Parts& like, int batch, int count) {
  Parts result;
  for (std::size_t i = 0; i < like.size(); ++i) {
    const int held = rows.empty() ? 0 : rows[i].shape(kRowAxis);
    if (held == 0) {
      result.push_back(zero_rows(like[i], batch, count));
    } else if (held == count) {
      result.push_back(rows[i]);
    } else {
      const auto zeros = zero_rows(rows[i], batch, count - held);
      result.push_back(mx::concatenate({zeros, rows[i]}, kRowAxis));
    }
  }
  return result;
}

Parts stacked(const Parts& first, const Parts& second) {
  Parts result;
  for (std::size_t i = 0; i < first.size(); ++i) {
    result.push_back(mx::concatenate({first[i], mx::astype(second[i], first[i].dtype())}, 0));
  }
  return result;
}

std::pair<Parts, std::vector<int>> merged(std::string_view kind, std::span<const Parts> sequences) {
  int longest = 0;
  const Parts* like = nullptr;
  for (const Parts& rows : sequences) {
    if (!rows.empty()) {
      longest = std::max(longest, rows.front().shape(kRowAxis));
      like = like == nullptr ? &rows : like;
      check_same_rows(kind, *like, rows);
      require(
          rows.front().shape(0) == 1,
          ErrorCode::kInvalidArgument,
          "[{}] a sequence of {} batch rows",
          kind,
          rows.front().shape(0)
      );
    }
  }
  std::pair<Parts, std::vector<int>> result;
  for (const Parts& rows : sequences) {
    result.second.push_back(longest - (rows.empty() ? 0 : rows.front().shape(kRowAxis)));
    if (longest > 0) {
      const Parts padded = padded_left(rows, *like, 1, longest);
      result.first = result.first.empty() ? padded : stacked(result.first, padded);
    }
  }
  return result;
}

BatchState parse_batch_state(std::string_view kind, std::vector<mx::array> arrays) {
  check_pair(kind, arrays, 2);
  BatchState state;
  if (arrays.empty()) {
    return state;
  }
  state.offset = to_ints(arrays[2], "offset");
  state.left_padding = to_ints(arrays[3], "left_padding");
  require(
      std::cmp_equal(state.offset.size(), arrays[0].shape(0)) &&
          state.left_padding.size() == state.offset.size(),
      ErrorCode::kCorruptData,
      "[{}] {} offsets and {} left paddings for {} batch rows",
      kind,
      state.offset.size(),
      state.left_padding.size(),
      arrays[0].shape(0)
  );
  arrays.erase(arrays.begin() + 2, arrays.end());
  state.rows = std::move(arrays);
  return state;
}

}  // namespace saker::caches
