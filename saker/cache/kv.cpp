// SPDX-License-Identifier: Apache-2.0
#include "saker/cache/kv.h"

#include <fmt/format.h>

#include <string>
#include <vector>

namespace saker::cache {

KVCache::KVCache(const kernels::KvShape& shape) : PagedCache(shape, std::nullopt) {}

std::vector<std::string> KVCache::meta_state() const {
  auto meta = quantization_meta();
  if (!meta.empty()) {
    meta.insert(meta.begin(), fmt::to_string(committed()));
  }
  return meta;
}

bool KVCache::can_trim(std::int64_t count) const {
  return count >= 0;
}

Mask KVCache::make_mask(int n, int window) const {
  if (window > 0) {
    return {Mask::Kind::kArray, causal_mask(n, static_cast<int>(offset()), window)};
  }
  return {n == 1 ? Mask::Kind::kNone : Mask::Kind::kCausal, std::nullopt};
}

std::unique_ptr<LayerCache> KVCache::copy() const {
  return std::unique_ptr<LayerCache>(new KVCache(*this));
}

}  // namespace saker::cache
