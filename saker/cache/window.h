// SPDX-License-Identifier: Apache-2.0
#pragma once

// Keeps `max_size` rows: the first `keep` of the sequence and the newest ones. For sliding layers
// (keep 0) and sequences with bounded memory. Unlike in a ring buffer, rows stay in time order, and
// results do not depend on how rows were cut into passes.

#include "saker/cache/paged.h"

namespace saker::cache {

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
  // Only while no row has been dropped: offset < max_size.
  bool can_trim(std::int64_t count) const override;
  // For rows in the order of `update`, oldest first.
  Mask make_mask(int n, int window) const override;
  std::unique_ptr<LayerCache> copy() const override;

 private:
  WindowCache(const WindowCache& other) = default;

  int max_size_;
  int keep_;
};

}  // namespace saker::cache
