// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/storage/kv_buffer.h"

#include "saker/base/error.h"

#include <algorithm>
#include <new>
#include <utility>

namespace saker::kernels {
namespace {

constexpr std::int64_t kStep = 256;

}  // namespace

void KvBuffer::prepare(std::int64_t first, int count) {
  require(
      first >= base_ && count >= 0 && first <= INT64_MAX - count,
      ErrorCode::kInvalidArgument,
      "cache: got {} rows from position {}, expected positions from {} on",
      count,
      first,
      base_
  );
  const std::int64_t last = first + count;
  const std::int64_t capacity = keys_.has_value() ? keys_->shape(2) : 0;
  if (last - base_ > capacity) {
    const std::int64_t base = std::max(base_, dead_ / kStep * kStep);
    const std::int64_t needed = (last - base + kStep - 1) / kStep * kStep;
    require(needed <= INT32_MAX, ErrorCode::kCapacity, "cache: {} rows are too many", needed);
    try {
      auto keys = grown(keys_, base, static_cast<int>(needed), shape_.head_dim);
      if (!shape_.values_in_keys) {
        values_ = grown(values_, base, static_cast<int>(needed), shape_.value_head_dim);
      }
      keys_ = std::move(keys);
    } catch (const std::bad_alloc&) {
      throw Error(ErrorCode::kCapacity, fmt::format("cache: no memory for {} rows", needed));
    }
    base_ = base;
    held_.resize(bytes_with(needed));
  }
  end_ = std::max(end_, last);
}

mx::array KvBuffer::grown(
    const std::optional<mx::array>& buffer, std::int64_t base, int capacity, int width
) const {
  const int held = static_cast<int>(std::max<std::int64_t>(end_ - base, 0));
  if (!buffer.has_value() || held == 0) {
    return mx::zeros({1, shape_.kv_heads, capacity, width}, shape_.dtype);
  }
  const int skip = static_cast<int>(base - base_);
  auto old = mx::slice(*buffer, {0, 0, skip, 0}, {1, shape_.kv_heads, skip + held, width});
  auto room = mx::zeros({1, shape_.kv_heads, capacity - held, width}, shape_.dtype);
  return mx::concatenate({old, room}, 2);
}

void KvBuffer::drop_before(std::int64_t position, int keep) {
  if (keep == 0) {
    dead_ = std::max(dead_, std::min(position, end_));
  }
}

void KvBuffer::drop_from(std::int64_t position) {
  if (position <= base_) {
    *this = KvBuffer(shape_);  // Nothing is left: rows can start anywhere again.
    return;
  }
  end_ = std::min(end_, position);
  dead_ = std::min(dead_, end_);
}

KvBuffer KvBuffer::slice(std::int64_t first, std::int64_t last) const {
  first = std::max(first, std::max(base_, dead_));
  last = std::min(last, end_);
  KvBuffer part(shape_);
  part.base_ = part.dead_ = part.end_ = std::max<std::int64_t>(first, 0);
  if (first < last) {
    part.keys_ = mx::contiguous(keys(first, last));
    mx::eval(*part.keys_);
    if (values_) {
      part.values_ = mx::contiguous(values(first, last));
      mx::eval(*part.values_);
    }
    part.end_ = last;
    part.held_.resize(bytes_with(last - first));
  }
  return part;
}

void KvBuffer::adopt(const KvBuffer& other, std::int64_t first) {
  const std::int64_t from = std::max(first, std::max(other.base_, other.dead_));
  KvBuffer joined = *this;
  joined.drop_from(first);
  if (!joined.keys_.has_value() || from > joined.end_ || from < joined.base_) {
    // A gap between the rows makes the earlier ones useless.
    joined = other;
    joined.dead_ = std::max(joined.dead_, from);
  } else if (from < other.end_) {
    joined.prepare(from, static_cast<int>(other.end_ - from));
    joined.write(from, other.keys(from, other.end_), other.values(from, other.end_));
  }
  *this = std::move(joined);
}

bool KvBuffer::holds(std::int64_t first, std::int64_t last) const {
  return first >= last || (first >= std::max(base_, dead_) && last <= end_);
}

void KvBuffer::for_each_block(const BlockVisitor& visit) const {
  if (keys_.has_value()) {
    mx::array keys = *keys_;
    mx::eval(keys);
    visit({0, keys.data<void>(), keys.nbytes()});
  }
  if (values_.has_value()) {
    mx::array values = *values_;
    mx::eval(values);
    visit({0, values.data<void>(), values.nbytes()});
  }
}

std::size_t KvBuffer::bytes_with(std::int64_t row_count) const {
  const auto capacity = static_cast<std::size_t>((row_count + kStep - 1) / kStep * kStep);
  return capacity * kv_row_bytes(shape_);
}

std::size_t KvBuffer::growth(std::int64_t first, std::int64_t count) const {
  const std::int64_t capacity = keys_.has_value() ? keys_->shape(2) : 0;
  const std::int64_t rows = first + count - base_;
  return rows <= capacity ? 0 : bytes_with(rows) - bytes_with(capacity);
}

std::size_t KvBuffer::nbytes() const {
  return (keys_ ? keys_->nbytes() : 0) + (values_ ? values_->nbytes() : 0);
}

void KvBuffer::write(std::int64_t first, const mx::array& keys, const mx::array& values) {
  const int from = static_cast<int>(first - base_);
  const int to = from + keys.shape(2);
  const auto update = [&](const mx::array& buffer, const mx::array& rows, int width) {
    const mx::Shape begin = {0, 0, from, 0};
    const mx::Shape end = {1, shape_.kv_heads, to, width};
    return mx::slice_update(buffer, mx::astype(rows, shape_.dtype), begin, end);
  };
  keys_ = update(*std::exchange(keys_, std::nullopt), keys, shape_.head_dim);
  if (values_) {
    values_ = update(*std::exchange(values_, std::nullopt), values, shape_.value_head_dim);
  }
}

mx::array KvBuffer::rows(const mx::array& buffer, std::int64_t first, std::int64_t last) const {
  const int from = static_cast<int>(first - base_);
  const int to = static_cast<int>(last - base_);
  return mx::slice(buffer, {0, 0, from, 0}, {1, shape_.kv_heads, to, buffer.shape(3)});
}

mx::array KvBuffer::keys(std::int64_t first, std::int64_t last) const {
  return rows(*keys_, first, last);
}

mx::array KvBuffer::values(std::int64_t first, std::int64_t last) const {
  if (!values_) {
    const auto all = keys(first, last);
    return mx::slice(all, {0, 0, 0, 0}, {1, shape_.kv_heads, all.shape(2), shape_.value_head_dim});
  }
  return rows(*values_, first, last);
}

}  // namespace saker::kernels
