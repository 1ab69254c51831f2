// SPDX-License-Identifier: Apache-2.0
#include "saker/caches/kv.h"

#include "saker/base/error.h"
#include "saker/cache/serialized.h"
#include "saker/caches/mask.h"
#include "saker/caches/quantized.h"
#include "saker/caches/rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace saker::caches {

KeyValues KVCache::update(const mx::array& keys, const mx::array& values) {
  check_update(kind(), keys, values, rows_.parts(), offset_);
  rows_.write(offset_, {keys, values});
  offset_ += keys.shape(2);
  const Parts rows = rows_of(rows_.parts(), 0, offset_);
  return {rows[0], rows[1]};
}

std::vector<mx::array> KVCache::state() const {
  return offset_ == 0 ? Parts{} : rows_of(rows_.parts(), 0, offset_);
}

void KVCache::set_state(std::vector<mx::array> arrays) {
  check_pair(kind(), arrays);
  rows_ = RowBuffer(std::move(arrays));
  offset_ = rows_.capacity();
}

QuantizedKVCache KVCache::to_quantized(const Quantization& quantization) const {
  QuantizedKVCache result(quantization);
  if (offset_ > 0) {
    const Parts rows = state();
    result.update_quantized(rows[0], rows[1]);
  }
  return result;
}

int KVCache::trim(int count) {
  count = std::clamp(count, 0, offset_);
  offset_ -= count;
  return count;
}

Mask KVCache::make_mask(int n, std::optional<int> window, MaskForm form) const {
  return create_attention_mask(n, offset_, window, form);
}

std::unique_ptr<Cache> KVCache::copy() const {
  return std::make_unique<KVCache>(*this);
}

void KVCache::become(Cache& other) {
  *this = dynamic_cast<KVCache&>(other);
}

ChunkedKVCache::ChunkedKVCache(std::optional<int> chunk_size) : chunk_size_(chunk_size) {
  require(
      chunk_size.value_or(0) >= 0,
      ErrorCode::kInvalidArgument,
      "[ChunkedKVCache] chunk_size is {}, expected 0 or more",
      chunk_size.value_or(0)
  );
}

void ChunkedKVCache::maybe_trim_front() {
  const int surplus = chunk_size_ ? held() - *chunk_size_ : 0;
  if (surplus <= 0 || rows_.is_empty() || *chunk_size_ == 0) {
    return;
  }
  rows_ = RowBuffer(rows_of(rows_.parts(), surplus, held()));
  start_ += surplus;
}

KeyValues ChunkedKVCache::update(const mx::array& keys, const mx::array& values) {
  check_update(kind(), keys, values, rows_.parts(), offset_);
  require(
      held() >= 0 && held() <= rows_.capacity(),
      ErrorCode::kInvalidArgument,
      "[ChunkedKVCache] {} rows from {} on are not all there",
      held(),
      start_
  );
  rows_.write(held(), {keys, values});
  offset_ += keys.shape(2);
  const Parts rows = rows_of(rows_.parts(), 0, held());
  return {rows[0], rows[1]};
}

std::vector<mx::array> ChunkedKVCache::state() const {
  return held() == 0 ? Parts{} : rows_of(rows_.parts(), 0, held());
}

void ChunkedKVCache::set_state(std::vector<mx::array> arrays) {
  check_pair(kind(), arrays);
  rows_ = RowBuffer(std::move(arrays));
  offset_ = start_ + rows_.capacity();
}

std::vector<std::string> ChunkedKVCache::meta_state() const {
  return {chunk_size_ ? fmt::to_string(*chunk_size_) : "None", fmt::to_string(start_)};
}

void ChunkedKVCache::set_meta_state(const std::vector<std::string>& meta) {
  require(
      meta.size() == 2,
      ErrorCode::kCorruptData,
      "[ChunkedKVCache] {} meta values, expected 2",
      meta.size()
  );
  std::optional<int> chunk_size;
  if (meta[0] != "None") {
    chunk_size = static_cast<int>(cache::meta_integer(meta[0], "ChunkedKVCache: chunk_size"));
  }
  const auto start =
      static_cast<int>(cache::meta_integer(meta[1], "ChunkedKVCache: start_position"));
  require(
      start >= 0 && start <= INT32_MAX - held() && chunk_size.value_or(0) >= 0,
      ErrorCode::kCorruptData,
      "[ChunkedKVCache] chunk_size {} and start_position {}",
      meta[0],
      start
  );
  offset_ = start + held();
  chunk_size_ = chunk_size;
  start_ = start;
}

int ChunkedKVCache::trim(int count) {
  count = std::clamp(count, 0, held());
  offset_ -= count;
  return count;
}

Mask ChunkedKVCache::make_mask(int n, std::optional<int> window, MaskForm form) const {
  return create_attention_mask(n, offset_, window, form);
}

std::unique_ptr<Cache> ChunkedKVCache::copy() const {
  return std::make_unique<ChunkedKVCache>(*this);
}

void ChunkedKVCache::become(Cache& other) {
  *this = dynamic_cast<ChunkedKVCache&>(other);
}

}  // namespace saker::caches
