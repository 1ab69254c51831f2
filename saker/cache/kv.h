// SPDX-License-Identifier: Apache-2.0
#pragma once

// Keeps every row; for layers that attend to the whole past.

#include "saker/cache/paged.h"

namespace saker::cache {

class KVCache final : public PagedCache {
 public:
  explicit KVCache(const kernels::KvShape& shape);

  std::string_view kind() const override { return is_quantized() ? "QuantizedKVCache" : "KVCache"; }

  std::optional<int> max_size() const override { return std::nullopt; }

  // Quantized caches only: offset, group_size, bits.
  std::vector<std::string> meta_state() const override;
  bool can_trim(std::int64_t count) const override;
  Mask make_mask(int n, int window) const override;
  std::unique_ptr<LayerCache> copy() const override;

 private:
  KVCache(const KVCache& other) = default;
};

}  // namespace saker::cache
