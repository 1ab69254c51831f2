// SPDX-License-Identifier: Apache-2.0
#pragma once

// Keeps the newest rows, `max_size` in all, and the first `keep` of a sequence always: the cache of
// sliding layers (keep 0) and of sequences with a bounded memory. Unlike a ring buffer, rows stay
// in time order and the result of a pass does not depend on how the rows were cut into passes.

#include "saker/cache/paged.h"

namespace saker::cache {

// Rows that stay at the beginning of a sequence where its memory is bounded, unless told otherwise
// (mlx-lm's default): attention leans on them.
inline constexpr int kRotatingDefaultKeep = 4;

class WindowCache final : public PagedCache {
 public:
  // Throws kInvalidArgument unless 0 <= keep < max_size.
  WindowCache(const kernels::KvShape& shape, int max_size, int keep = 0);

  std::string_view kind() const override {
    return is_quantized() ? "QuantizedRotatingKVCache" : "RotatingKVCache";
  }

  std::optional<int> max_size() const override { return max_size_; }

  int keep() const { return keep_; }

  std::vector<std::string> meta_state() const override;
  // Only while no row has been forgotten: offset < max_size.
  bool can_trim(std::int64_t count) const override;
  // Over the rows as `update` gives them, oldest first.
  Mask make_mask(int n, int window) const override;
  std::unique_ptr<LayerCache> copy() const override;

 private:
  WindowCache(const WindowCache& other) = default;

  int max_size_;
  int keep_;
};

}  // namespace saker::cache
