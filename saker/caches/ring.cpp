// SPDX-License-Identifier: Apache-2.0
#include "saker/caches/ring.h"

#include "saker/base/error.h"
#include "saker/cache/attention_inputs.h"
#include "saker/cache/serialized.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace saker::caches {
namespace {

bool is_size(int max_size, int keep) {
  return keep >= 0 && (keep < max_size || (keep == 0 && max_size == 0));
}

}  // namespace

Ring::Ring(int max_size, int keep) : max_size_(max_size), keep_(keep) {
  require(
      is_size(max_size, keep),
      ErrorCode::kInvalidArgument,
      "[RotatingKVCache] max_size is {} and keep {}, expected 0 <= keep < max_size",
      max_size,
      keep
  );
}

void Ring::check_size() const {
  require(
      max_size_ > 0,
      ErrorCode::kInvalidArgument,
      "[RotatingKVCache] max_size is 0, expected 1 or more where rows are appended"
  );
}

void Ring::check() const {
  check_size();
  const int held = std::min(rows_.capacity(), offset_);
  const bool wrapped = held == max_size_ && idx_ >= keep_ && idx_ <= held;
  require(
      held >= std::min(offset_, max_size_) && (idx_ == held || wrapped),
      ErrorCode::kInvalidArgument,
      "[RotatingKVCache] {} rows at offset {} with idx {} and max_size {}",
      rows_.capacity(),
      offset_,
      idx_,
      max_size_
  );
}

void Ring::append(const Parts& rows) {
  spdlog::trace(
      "[RotatingKVCache] {} rows at offset {}, idx {}, max_size {}",
      rows.front().shape(2),
      offset_,
      idx_,
      max_size_
  );
  if (rows.front().shape(2) == 1) {
    append_one(rows);
  } else {
    append_many(rows);
  }
}

Parts Ring::without_oldest(const Parts& parts, int count) const {
  const int rows = parts.front().shape(2);
  if (count <= 0) {
    return parts;
  }
  if (keep_ == 0) {
    return rows_of(parts, count, rows);
  }
  return joined(rows_of(parts, 0, keep_), rows_of(parts, count + keep_, rows));
}

void Ring::append_one(const Parts& row) {
  const int capacity = rows_.capacity();
  int idx = idx_;
  if (capacity > max_size_) {
    rows_ = RowBuffer(without_oldest(rows_.parts(), capacity - max_size_));
    idx = max_size_;
  } else if (offset_ >= capacity && capacity < max_size_) {
    const int room = std::min(std::max(kStep, capacity / 2), max_size_ - capacity);
    rows_.reserve(capacity + room, offset_, row);
    idx = offset_;
  }
  if (idx == max_size_) {
    idx = keep_;
  }
  rows_.write(idx, row);
  ++offset_;
  idx_ = idx + 1;
}

void Ring::append_many(const Parts& rows) {
  if (is_empty()) {
    rows_ = RowBuffer(rows);
  } else {
    const Parts ordered = in_time_order();
    const int surplus = ordered.front().shape(2) - max_size_ + 1;
    rows_ = RowBuffer(joined(without_oldest(ordered, surplus), rows));
  }
  offset_ += rows.front().shape(2);
  idx_ = rows_.capacity();
}

Parts Ring::visible() const {
  return rows_of(rows_.parts(), 0, std::min(offset_, rows_.capacity()));
}

Parts Ring::in_time_order() const {
  Parts rows = visible();
  if (rows.empty() || idx_ == rows.front().shape(2)) {
    return rows;
  }
  Parts newest = joined(rows_of(rows, idx_, rows.front().shape(2)), rows_of(rows, keep_, idx_));
  return keep_ == 0 ? newest : joined(rows_of(rows, 0, keep_), newest);
}

std::vector<std::string> Ring::meta_state() const {
  return {
      fmt::to_string(keep_),
      fmt::to_string(max_size_),
      fmt::to_string(offset_),
      fmt::to_string(idx_),
  };
}

void Ring::set_meta_state(const std::vector<std::string>& meta) {
  require(
      meta.size() == 4,
      ErrorCode::kCorruptData,
      "[RotatingKVCache] {} meta values, expected 4",
      meta.size()
  );
  std::array<int, 4> values{};
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<int>(cache::meta_integer(meta[i], "RotatingKVCache: a meta value"));
  }
  const auto [keep, max_size, offset, idx] = values;
  require(
      is_size(max_size, keep) && offset >= 0 && idx >= 0,
      ErrorCode::kCorruptData,
      "[RotatingKVCache] keep {}, max_size {}, offset {} and idx {}",
      keep,
      max_size,
      offset,
      idx
  );
  keep_ = keep;
  max_size_ = max_size;
  offset_ = offset;
  idx_ = idx;
}

int Ring::trim(int count) {
  // A wrapped ring has lost the rows that would become visible again.
  count = is_trimmable() ? std::clamp(count, 0, offset_) : 0;
  offset_ -= count;
  idx_ -= count;
  return count;
}

Mask Ring::make_mask(int n, std::optional<int> window, MaskForm form) const {
  check_size();
  const int limit = window.value_or(0) > 0 ? *window : max_size_;
  if (n > 1) {
    const int before = std::min(max_size_ - 1, offset_);
    if (before + n > limit || form == MaskForm::kArray) {
      return {Mask::Kind::kArray, cache::causal_mask(n, before, limit)};
    }
    return {Mask::Kind::kCausal, std::nullopt};
  }
  if (!window || offset_ < limit || max_size_ <= limit) {
    return {Mask::Kind::kNone, std::nullopt};
  }
  // Marks the newest rows in the ring's order after the new row is in.
  const int visible = offset_ < max_size_ ? offset_ + 1 : max_size_;
  const int idx = idx_ >= max_size_ ? 0 : idx_;
  const auto newest =
      mx::greater_equal(mx::arange(0, visible, mx::int32), mx::array(visible - limit));
  return {Mask::Kind::kArray, mx::expand_dims(mx::roll(newest, idx + 1), 0)};  // [1, S]
}

}  // namespace saker::caches
