// SPDX-License-Identifier: Apache-2.0
#include "saker/caches/batch.h"

#include "saker/base/error.h"
#include "saker/caches/batch_rows.h"
#include "saker/caches/rows.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace saker::caches {

BatchKVCache::BatchKVCache(std::vector<int> left_padding)
    : left_padding_(std::move(left_padding)), offset_(negated(left_padding_)) {}

void BatchKVCache::prepare(const Padding& padding) {
  check_padding(kind(), padding, offset_.size(), is_empty());
  if (!padding.left.empty()) {
    add_to(left_padding_, padding.left, 1);
    add_to(offset_, padding.left, -1);
  }
  if (has_any(padding.right)) {
    right_padding_ = padding.right;
  }
}

void BatchKVCache::finalize() {
  if (right_padding_.empty()) {
    return;
  }
  if (!is_empty()) {
    // Only rows before idx_ are valid and take part in the roll.
    rows_ = RowBuffer(rolled(rows_of(rows_.parts(), 0, idx_), right_padding_));
  }
  add_to(offset_, right_padding_, -1);
  add_to(left_padding_, right_padding_, 1);
  right_padding_.clear();
}

void BatchKVCache::filter(std::span<const int> batch_rows) {
  check_indices(batch_rows, static_cast<int>(offset_.size()));
  require(!batch_rows.empty(), ErrorCode::kInvalidArgument, "[BatchKVCache] no batch row to keep");
  left_padding_ = chosen(left_padding_, batch_rows);
  offset_ = chosen(offset_, batch_rows);
  if (!right_padding_.empty()) {
    right_padding_ = chosen(right_padding_, batch_rows);
  }
  const int shared = std::clamp(*std::ranges::min_element(left_padding_), 0, idx_);
  if (!is_empty()) {
    rows_ = RowBuffer(taken(rows_of(rows_.parts(), shared, rows_.capacity()), batch_rows));
    idx_ -= shared;
    add_to(left_padding_, std::vector<int>(left_padding_.size(), shared), -1);
  }
}

void BatchKVCache::extend(const BatchKVCache& other) {
  check_same_rows(kind(), rows_.parts(), other.rows_.parts());
  const int idx = std::max(idx_, other.idx_);
  if (idx > 0) {
    const Parts& like = is_empty() ? other.rows_.parts() : rows_.parts();
    const auto right_justified = [&](const BatchKVCache& cache) {
      return padded_left(
          rows_of(cache.rows_.parts(), 0, cache.is_empty() ? 0 : cache.idx_),
          like,
          static_cast<int>(cache.offset_.size()),
          idx
      );
    };
    rows_ = RowBuffer(stacked(right_justified(*this), right_justified(other)));
  }
  append_to(left_padding_, idx - idx_, other.left_padding_, idx - other.idx_);
  append_to(offset_, 0, other.offset_, 0);
  idx_ = idx;
}

KVCache BatchKVCache::extract(int batch_row) const {
  check_indices(std::span(&batch_row, 1), static_cast<int>(offset_.size()));
  const int first = std::clamp(left_padding_[static_cast<std::size_t>(batch_row)], 0, idx_);
  KVCache cache;
  if (first < idx_) {
    cache.set_state(taken(rows_of(rows_.parts(), first, idx_), std::span(&batch_row, 1)));
  }
  return cache;
}

BatchKVCache BatchKVCache::merge(std::span<const KVCache* const> caches) {
  std::vector<Parts> rows;
  rows.reserve(caches.size());
  for (const KVCache* cache : caches) {
    rows.push_back(cache->state());
  }
  auto [parts, padding] = merged("BatchKVCache", rows);
  BatchKVCache result(std::move(padding));
  if (!parts.empty()) {
    result.idx_ = parts.front().shape(2);
    result.rows_ = RowBuffer(std::move(parts));
    add_to(result.offset_, std::vector<int>(caches.size(), result.idx_), 1);
  }
  return result;
}

KeyValues BatchKVCache::update(const mx::array& keys, const mx::array& values) {
  check_update(kind(), keys, values, rows_.parts(), idx_);
  const auto batch = offset_.empty() ? static_cast<std::size_t>(keys.shape(0)) : offset_.size();
  const Parts fresh = for_batch(kind(), keys, values, batch);
  offset_.resize(batch);  // A cache restored without rows has no batch size yet.
  left_padding_.resize(batch);
  const int count = keys.shape(2);
  rows_.write(idx_, fresh);
  idx_ += count;
  add_to(offset_, std::vector<int>(offset_.size(), count), 1);
  const Parts rows = rows_of(rows_.parts(), 0, idx_);
  return {rows[0], rows[1]};
}

std::vector<mx::array> BatchKVCache::state() const {
  if (idx_ == 0) {
    return {};
  }
  Parts arrays = rows_of(rows_.parts(), 0, idx_);
  arrays.push_back(to_array(offset_));
  arrays.push_back(to_array(left_padding_));
  return arrays;
}

void BatchKVCache::set_state(std::vector<mx::array> arrays) {
  BatchState state = parse_batch_state(kind(), std::move(arrays));
  right_padding_.clear();
  rows_ = RowBuffer(std::move(state.rows));
  idx_ = rows_.capacity();
  if (rows_.is_empty()) {
    offset_ = negated(left_padding_);
    return;
  }
  offset_ = std::move(state.offset);
  left_padding_ = std::move(state.left_padding);
}

int BatchKVCache::trim(int count) {
  count = std::clamp(count, 0, idx_);
  idx_ -= count;
  add_to(offset_, std::vector<int>(offset_.size(), count), -1);
  return count;
}

Mask BatchKVCache::make_mask(int n, std::optional<int> window, MaskForm /*form*/) const {
  return {Mask::Kind::kArray, batch_causal_mask(n, idx_, window, left_padding_)};
}

std::unique_ptr<Cache> BatchKVCache::copy() const {
  return std::make_unique<BatchKVCache>(*this);
}

void BatchKVCache::become(Cache& other) {
  *this = dynamic_cast<BatchKVCache&>(other);
}

}  // namespace saker::caches
