// SPDX-License-Identifier: Apache-2.0
#include "saker/cache/window.h"

#include "saker/base/error.h"
#include "saker/cache/attention_inputs.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

namespace saker::cache {
namespace {

RowBound checked_bound(int max_size, int keep) {
  require(
      keep >= 0 && keep < max_size,
      ErrorCode::kInvalidArgument,
      "[WindowCache] max_size is {} and keep {}, expected 0 <= keep < max_size",
      max_size,
      keep
  );
  return {.recent = max_size - keep, .keep = keep};
}

}  // namespace

WindowCache::WindowCache(const kernels::KvShape& shape, int max_size, int keep)
    : PagedCache(shape, checked_bound(max_size, keep)), max_size_(max_size), keep_(keep) {}

bool WindowCache::can_trim(std::int64_t count) const {
  return count == 0 || (count > 0 && offset() < max_size_);
}

std::vector<std::string> WindowCache::meta_state() const {
  // The rows are in time order, so the ring wraps at their end.
  const std::int64_t held = std::min<std::int64_t>(committed(), max_size_);
  std::vector<std::string> meta = {
      fmt::to_string(keep_),
      fmt::to_string(max_size_),
      fmt::to_string(committed()),
      fmt::to_string(held),
  };
  std::ranges::move(quantization_meta(), std::back_inserter(meta));
  return meta;
}

Mask WindowCache::make_mask(int n, int window) const {
  if (n > 1) {
    // Up to max_size - 1 rows precede the first new one.
    const int before = static_cast<int>(std::min<std::int64_t>(max_size_ - 1, offset()));
    const int limit = window > 0 ? window : max_size_;
    if (before + n > limit) {
      return {Mask::Kind::kArray, causal_mask(n, before, limit)};
    }
    return {Mask::Kind::kCausal, std::nullopt};
  }
  if (window > 0 && offset() >= window && max_size_ > window) {
    const int visible = static_cast<int>(std::min<std::int64_t>(offset() + 1, max_size_));
    const auto index = mx::arange(0, visible, mx::int32);
    return {
        Mask::Kind::kArray,
        mx::expand_dims(mx::greater_equal(index, mx::array(visible - window)), 0),  // [1, S]
    };
  }
  return {Mask::Kind::kNone, std::nullopt};
}

std::unique_ptr<LayerCache> WindowCache::copy() const {
  return std::unique_ptr<LayerCache>(new WindowCache(*this));
}

}  // namespace saker::cache
