// SPDX-License-Identifier: Apache-2.0
#include "saker/caches/row_buffer.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace saker::caches {
namespace {

int grown(int capacity, int needed) {
  const std::int64_t wanted = std::max<std::int64_t>(needed, std::int64_t{capacity} + capacity / 2);
  const std::int64_t rounded = (wanted + kStep - 1) / kStep * kStep;
  return static_cast<int>(std::min<std::int64_t>(rounded, INT32_MAX));
}

}  // namespace

Parts rows_of(const Parts& parts, int first, int last) {
  Parts result;
  for (const mx::array& part : parts) {
    if (first == 0 && last == part.shape(kRowAxis)) {
      result.push_back(part);
      continue;
    }
    mx::Shape end = part.shape();
    end[kRowAxis] = last;
    result.push_back(mx::slice(part, {0, 0, first, 0}, std::move(end)));
  }
  return result;
}

Parts joined(const Parts& first, const Parts& second) {
  Parts result;
  result.reserve(first.size());
  for (std::size_t i = 0; i < first.size(); ++i) {
    result.push_back(mx::concatenate({first[i], mx::astype(second[i], first[i].dtype())}, kRowAxis)
    );
  }
  return result;
}

std::size_t nbytes_of(const Parts& parts) {
  std::size_t total = 0;
  for (const mx::array& part : parts) {
    total += part.nbytes();
  }
  return total;
}

void RowBuffer::reserve(int capacity, int used, const Parts& like) {
  Parts result;
  for (std::size_t i = 0; i < like.size(); ++i) {
    const mx::array& part = is_empty() ? like[i] : parts_[i];
    mx::Shape shape = part.shape();
    shape[kRowAxis] = capacity - used;
    const mx::array room = mx::zeros(shape, part.dtype());
    if (used == 0) {
      result.push_back(room);
    } else {
      result.push_back(mx::concatenate({rows_of({part}, 0, used).front(), room}, kRowAxis));
    }
  }
  parts_ = std::move(result);
}

void RowBuffer::write(int at, const Parts& rows) {
  const int end = at + rows.front().shape(kRowAxis);
  if (end > capacity()) {
    reserve(grown(capacity(), end), at, rows);
  }
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    mx::Shape last = parts_[i].shape();
    last[kRowAxis] = end;
    mx::Shape target = parts_[i].shape();
    target[kRowAxis] = end - at;
    const auto update = mx::broadcast_to(mx::astype(rows[i], parts_[i].dtype()), target);
    // From here on only the graph holds the old array, so it is written in place.
    const mx::array old = std::exchange(parts_[i], mx::array(0.0F));
    parts_[i] = mx::slice_update(old, update, {0, 0, at, 0}, std::move(last));
  }
}

void RowBuffer::materialize() {
  mx::eval(parts_);
}

}  // namespace saker::caches
