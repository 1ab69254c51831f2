// SPDX-License-Identifier: Apache-2.0
#include "saker/caches/batch_rotating.h"

#include "saker/base/error.h"
#include "saker/cache/serialized.h"
#include "saker/caches/batch_rows.h"
#include "saker/caches/rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace saker::caches {
namespace {}  // namespace

BatchRotatingKVCache::BatchRotatingKVCache(int max_size, std::vector<int> left_padding)
    : left_padding_(std::move(left_padding)), offset_(negated(left_padding_)), max_size_(max_size) {
  require(
      max_size >= 1,
      ErrorCode::kInvalidArgument,
      "[BatchRotatingKVCache] max_size is {}, expected 1 or more",
      max_size
  );
}

void BatchRotatingKVCache::shift_all(std::vector<int>& values, int by) {
  for (int& value : values) {
    value += by;
  }
}

void BatchRotatingKVCache::prepare(const Padding& padding) {
  check_padding(kind(), padding, offset_.size(), is_empty());
  const bool right = has_any(padding.right);
  require(
      !right || padding.lengths.size() == offset_.size(),
      ErrorCode::kInvalidArgument,
      "[BatchRotatingKVCache] right padding needs the lengths of all rows"
  );
  if (!padding.left.empty()) {
    add_to(left_padding_, padding.left, 1);
    add_to(offset_, padding.left, -1);
  }
  if (right) {
    ends_ = padding.lengths;
    add_to(ends_, offset_, 1);
  }
}

void BatchRotatingKVCache::roll_padding() {
  std::vector<int> shifts;
  shifts.reserve(offset_.size());
  for (std::size_t i = 0; i < offset_.size(); ++i) {
    shifts.push_back(std::max(0, offset_[i] - ends_[i]));
  }
  if (!is_empty()) {
    rows_ = RowBuffer(rolled(rows_.parts(), shifts));
  }
  add_to(left_padding_, shifts, 1);
  add_to(offset_, shifts, -1);
}

void BatchRotatingKVCache::finalize() {
  if (!ends_.empty()) {
    roll_padding();
    ends_.clear();
  }
}

void BatchRotatingKVCache::order_by_time() {
  if (rotated_) {
    Parts parts;
    parts.reserve(rows_.parts().size());
    for (const mx::array& part : rows_.parts()) {
      parts.push_back(mx::roll(part, -idx_, kRowAxis));
    }
    rows_ = RowBuffer(std::move(parts));
    idx_ = rows_.capacity();
    rotated_ = false;
  }
}

void BatchRotatingKVCache::append_many(const Parts& rows) {
  const int count = rows.front().shape(kRowAxis);
  if (is_empty()) {
    rows_ = RowBuffer(rows);
  } else {
    order_by_time();
    rows_ = RowBuffer(rows_of(rows_.parts(), 0, idx_));
    if (!ends_.empty()) {
      roll_padding();
    }
    const int surplus = std::max(0, idx_ - max_size_ + 1);
    shift_all(left_padding_, -surplus);
    rows_ = RowBuffer(joined(rows_of(rows_.parts(), surplus, idx_), rows));
  }
  shift_all(offset_, count);
  total_ += count;
  idx_ = rows_.capacity();
}

void BatchRotatingKVCache::append_one(const Parts& row) {
  const int capacity = rows_.capacity();
  if (capacity > max_size_) {
    rows_ = RowBuffer(rows_of(rows_.parts(), capacity - max_size_, capacity));
    idx_ = max_size_;
    shift_all(left_padding_, max_size_ - capacity);
  } else if (total_ >= capacity && capacity < max_size_) {
    const int room = std::min(std::max(kStep, capacity / 2), max_size_ - capacity);
    rows_.reserve(capacity + room, std::min(total_, capacity), row);
    idx_ = total_;
  }
  if (idx_ == max_size_) {
    rotated_ = true;
    idx_ = 0;
  }
  if (rotated_) {
    shift_all(left_padding_, -1);
  }
  rows_.write(idx_, row);
  shift_all(offset_, 1);
  ++total_;
  ++idx_;
}

Parts BatchRotatingKVCache::visible() const {
  return rows_of(rows_.parts(), 0, std::min(total_, rows_.capacity()));
}

KeyValues BatchRotatingKVCache::update(const mx::array& keys, const mx::array& values) {
  check_update(kind(), keys, values, rows_.parts(), total_);
  const bool one = keys.shape(kRowAxis) == 1;
  require(
      !one || ends_.empty(),
      ErrorCode::kInvalidArgument,
      "[BatchRotatingKVCache] finalize comes before single rows"
  );
  require(
      idx_ <= rows_.capacity() && total_ >= std::min(rows_.capacity(), idx_) &&
          rows_.capacity() >= std::min(total_, max_size_),
      ErrorCode::kInvalidArgument,
      "[BatchRotatingKVCache] {} rows at offset {} with idx {} and max_size {}",
      rows_.capacity(),
      total_,
      idx_,
      max_size_
  );
  const auto batch = offset_.empty() ? static_cast<std::size_t>(keys.shape(0)) : offset_.size();
  Parts rows = for_batch(kind(), keys, values, batch);
  offset_.resize(batch);  // A cache restored without rows has no batch size yet.
  left_padding_.resize(batch);
  one ? append_one(rows) : append_many(rows);
  rows = visible();
  return {rows[0], rows[1]};
}

void BatchRotatingKVCache::filter(std::span<const int> batch_rows) {
  check_indices(batch_rows, static_cast<int>(offset_.size()));
  require(
      !batch_rows.empty(),
      ErrorCode::kInvalidArgument,
      "[BatchRotatingKVCache] no batch row to keep"
  );
  if (!is_empty()) {
    rows_ = RowBuffer(taken(rows_.parts(), batch_rows));
  }
  left_padding_ = chosen(left_padding_, batch_rows);
  offset_ = chosen(offset_, batch_rows);
  if (!ends_.empty()) {
    ends_ = chosen(ends_, batch_rows);
  }
}

void BatchRotatingKVCache::extend(const BatchRotatingKVCache& other) {
  check_same_rows(kind(), rows_.parts(), other.rows_.parts());
  require(
      max_size_ == other.max_size_ && ends_.empty() && other.ends_.empty(),
      ErrorCode::kInvalidArgument,
      "[BatchRotatingKVCache] max_size {} extended by {}, or one waits for finalize",
      max_size_,
      other.max_size_
  );
  BatchRotatingKVCache more = other;
  order_by_time();
  more.order_by_time();
  const int idx = std::max(idx_, more.idx_);
  if (idx > 0) {
    const Parts& like = is_empty() ? more.rows_.parts() : rows_.parts();
    const auto right_justified = [&](const BatchRotatingKVCache& cache) {
      return padded_left(
          rows_of(cache.rows_.parts(), 0, cache.is_empty() ? 0 : cache.idx_),
          like,
          static_cast<int>(cache.offset_.size()),
          idx
      );
    };
    rows_ = RowBuffer(stacked(right_justified(*this), right_justified(more)));
  }
  // A row that dropped rows begins where its ring did, not before. mlx-lm adds to the negative
  // padding instead, so such a row sees the zeros put before it.
  const auto clamp_at_zero = [](std::vector<int>& padding, int by) {
    for (int& value : padding) {
      value = by > 0 ? std::max(value, 0) : value;
    }
  };
  clamp_at_zero(left_padding_, idx - idx_);
  clamp_at_zero(more.left_padding_, idx - more.idx_);
  append_to(left_padding_, idx - idx_, more.left_padding_, idx - more.idx_);
  append_to(offset_, 0, more.offset_, 0);
  idx_ = idx;
  total_ = std::max(total_, more.total_);
}

RotatingKVCache BatchRotatingKVCache::extract(int batch_row) const {
  check_indices(std::span(&batch_row, 1), static_cast<int>(offset_.size()));
  BatchRotatingKVCache ordered = *this;
  ordered.order_by_time();
  const auto row = static_cast<std::size_t>(batch_row);
  const int first = std::clamp(left_padding_[row], 0, ordered.idx_);
  RotatingKVCache cache(max_size_);
  if (first < ordered.idx_) {
    const Parts rows = rows_of(ordered.rows_.parts(), first, ordered.idx_);
    const int held = rows.front().shape(kRowAxis);
    cache.from_serialized(
        taken(rows, std::span(&batch_row, 1)),
        {"0",
         fmt::to_string(max_size_),
         fmt::to_string(std::max(offset_[row], held)),
         fmt::to_string(held)}
    );
  }
  return cache;
}

BatchRotatingKVCache BatchRotatingKVCache::merge(std::span<const RotatingKVCache* const> caches) {
  const int max_size = *caches.front()->max_size();
  std::vector<Parts> rows;
  std::vector<int> offsets;
  for (const RotatingKVCache* cache : caches) {
    require(
        cache->max_size() == max_size,
        ErrorCode::kInvalidArgument,
        "[BatchRotatingKVCache] max_size {} merged with {}",
        max_size,
        *cache->max_size()
    );
    offsets.push_back(static_cast<int>(cache->offset()));
    const auto held = cache->in_time_order();
    if (!held) {
      rows.emplace_back();
      continue;
    }
    const int count = held->keys.shape(kRowAxis);
    rows.push_back(rows_of({held->keys, held->values}, count - std::min(count, max_size), count));
  }
  auto [parts, padding] = merged("BatchRotatingKVCache", rows);
  BatchRotatingKVCache result(max_size, std::move(padding));
  if (!parts.empty()) {
    result.idx_ = result.total_ = parts.front().shape(kRowAxis);
    result.rows_ = RowBuffer(std::move(parts));
    result.offset_ = std::move(offsets);
  }
  return result;
}

std::vector<mx::array> BatchRotatingKVCache::state() const {
  if (total_ == 0) {
    return {};
  }
  Parts arrays = visible();
  arrays.push_back(to_array(offset_));
  arrays.push_back(to_array(left_padding_));
  return arrays;
}

void BatchRotatingKVCache::set_state(std::vector<mx::array> arrays) {
  BatchState state = parse_batch_state(kind(), std::move(arrays));
  ends_.clear();
  rows_ = RowBuffer(std::move(state.rows));
  if (rows_.is_empty()) {
    offset_ = negated(left_padding_);
    return;
  }
  offset_ = std::move(state.offset);
  left_padding_ = std::move(state.left_padding);
}

std::vector<std::string> BatchRotatingKVCache::meta_state() const {
  return {
      fmt::to_string(max_size_),
      fmt::to_string(total_),
      fmt::to_string(idx_),
      rotated_ ? "true" : "false",
  };
}

void BatchRotatingKVCache::set_meta_state(const std::vector<std::string>& meta) {
  require(
      meta.size() == 4,
      ErrorCode::kCorruptData,
      "[BatchRotatingKVCache] {} meta values, expected 4",
      meta.size()
  );
  const auto max_size =
      static_cast<int>(cache::meta_integer(meta[0], "BatchRotatingKVCache: max_size"));
  const auto total = static_cast<int>(cache::meta_integer(meta[1], "BatchRotatingKVCache: offset"));
  const auto idx = static_cast<int>(cache::meta_integer(meta[2], "BatchRotatingKVCache: idx"));
  const bool rotated = cache::meta_bool(meta[3], "BatchRotatingKVCache: rotated");
  require(
      max_size >= 1 && total >= 0 && idx >= 0,
      ErrorCode::kCorruptData,
      "[BatchRotatingKVCache] max_size {}, offset {} and idx {}",
      max_size,
      total,
      idx
  );
  max_size_ = max_size;
  total_ = total;
  idx_ = idx;
  rotated_ = rotated;
}

int BatchRotatingKVCache::trim(int count) {
  count = is_trimmable() ? std::clamp(count, 0, std::min(total_, idx_)) : 0;
  total_ -= count;
  idx_ -= count;
  shift_all(offset_, -count);
  return count;
}

Mask BatchRotatingKVCache::make_mask(int n, std::optional<int> window, MaskForm /*form*/) const {
  const int limit = window.value_or(0) > 0 ? *window : max_size_;
  const int before = std::min(max_size_ - 1, total_);
  const bool wraps = n == 1 && (rotated_ || idx_ >= max_size_);
  // Several rows put the ring in order first; mlx-lm's mask ignores that.
  const int end = rotated_ && n > 1 ? rows_.capacity() : idx_;
  std::vector<int> padding = left_padding_;
  for (int& value : padding) {
    value -= std::max(0, end - max_size_ + (n > 1 ? 1 : 0)) + (wraps ? 1 : 0);
  }
  auto mask = batch_causal_mask(n, before, limit, padding);
  if (wraps) {
    mask = mx::roll(mask, (idx_ >= max_size_ ? 0 : idx_) + 1, -1);
  }
  return {Mask::Kind::kArray, mask};
}

std::unique_ptr<Cache> BatchRotatingKVCache::copy() const {
  return std::make_unique<BatchRotatingKVCache>(*this);
}

void BatchRotatingKVCache::become(Cache& other) {
  *this = dynamic_cast<BatchRotatingKVCache&>(other);
}

}  // namespace saker::caches
