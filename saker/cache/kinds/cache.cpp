// SPDX-License-Identifier: Apache-2.0
#include "saker/cache/kinds/cache.h"

#include "saker/base/error.h"
#include "saker/cache/kinds/arrays.h"
#include "saker/cache/kinds/batch.h"
#include "saker/cache/kinds/batch_rotating.h"
#include "saker/cache/kinds/cache_list.h"
#include "saker/cache/kinds/kv.h"
#include "saker/cache/kinds/quantized.h"
#include "saker/cache/kinds/rotating.h"
#include "saker/cache/kinds/rows.h"
#include "saker/cache/serialized.h"
#include "saker/cache/serialized_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace saker::cache::kinds {
namespace {

// A cache without state, to be filled; not for lists.
std::unique_ptr<Cache> make_blank(std::string_view kind) {
  if (kind == "KVCache") {
    return std::make_unique<KVCache>();
  }
  if (kind == "RotatingKVCache") {
    return std::make_unique<RotatingKVCache>(1);
  }
  if (kind == "ChunkedKVCache") {
    return std::make_unique<ChunkedKVCache>(std::nullopt);
  }
  if (kind == "QuantizedKVCache") {
    return std::make_unique<QuantizedKVCache>();
  }
  if (kind == "QuantizedRotatingKVCache") {
    return std::make_unique<QuantizedRotatingKVCache>(1, 0, Quantization{});
  }
  if (kind == "BatchKVCache") {
    return std::make_unique<BatchKVCache>(std::vector<int>{});
  }
  if (kind == "BatchRotatingKVCache") {
    return std::make_unique<BatchRotatingKVCache>(1, std::vector<int>{});
  }
  const auto label =
      kind == "MambaCache" ? ArraysCache::Label::kMamba : ArraysCache::Label::kArrays;
  return std::make_unique<ArraysCache>(0, std::vector<int>{}, label);
}

// Reduces offset and rows of a quantized cache to the smaller of the two.
void converge(std::vector<mx::array>& arrays, std::vector<std::string>& meta) {
  if (meta.size() == 4) {
    meta.erase(meta.begin());  // mlx-swift's step size.
  }
  if (meta.size() != 3 || arrays.empty() || arrays.front().ndim() != 4) {
    return;
  }
  int rows = static_cast<int>(meta_integer(meta[0], "QuantizedKVCache: offset"));
  for (const mx::array& part : arrays) {
    rows = part.ndim() == 4 ? std::min(rows, part.shape(2)) : rows;
  }
  if (rows > 0) {
    for (mx::array& part : arrays) {
      part = part.ndim() == 4 ? rows_of({part}, 0, rows).front() : part;
    }
    meta[0] = fmt::to_string(rows);
  }
}

std::unique_ptr<Cache> list_from_state(SerializedCache list) {
  std::vector<std::unique_ptr<Cache>> children;
  for (const SerializedCache& child : split_cache_list(std::move(list))) {
    std::vector<mx::array> arrays;
    arrays.reserve(child.state.size());
    for (const Tensor& tensor : child.state) {
      arrays.push_back(cache::to_array(tensor));
    }
    children.push_back(from_state(child.kind, std::move(arrays), child.meta));
  }
  return std::make_unique<CacheList>(std::move(children));
}

}  // namespace

RopeOffset Cache::rope_offset() const {
  if (const BatchPositioned* const batch = as_batch_positioned()) {
    return to_array(batch->batch_offset());
  }
  return offset();
}

QuantizedCache* Cache::as_quantized() {
  return dynamic_cast<QuantizedCache*>(this);
}

const QuantizedCache* Cache::as_quantized() const {
  return dynamic_cast<const QuantizedCache*>(this);
}

const BatchPositioned* Cache::as_batch_positioned() const {
  return dynamic_cast<const BatchPositioned*>(this);
}

CacheList* Cache::as_cache_list() {
  return dynamic_cast<CacheList*>(this);
}

const CacheList* Cache::as_cache_list() const {
  return dynamic_cast<const CacheList*>(this);
}

void Cache::state_into(std::vector<mx::array>& arrays) const {
  for (mx::array& array : state()) {
    arrays.push_back(std::move(array));
  }
}

void Cache::meta_state_into(std::vector<std::string>& values) const {
  for (std::string& value : meta_state()) {
    values.push_back(std::move(value));
  }
}

void Cache::set_meta_state(const std::vector<std::string>& meta) {
  require(
      meta.empty(),
      ErrorCode::kCorruptData,
      "[{}] {} meta values, expected none",
      kind(),
      meta.size()
  );
}

void Cache::from_serialized(std::vector<mx::array> arrays, const std::vector<std::string>& meta) {
  become(*from_state(kind(), std::move(arrays), meta));
}

std::unique_ptr<Cache> from_state(
    std::string_view kind, std::vector<mx::array> arrays, std::vector<std::string> meta
) {
  SerializedCache serialized;
  serialized.kind = canonical_kind(kind);
  if (serialized.kind == "QuantizedKVCache") {
    converge(arrays, meta);
  }
  serialized.meta = std::move(meta);
  for (const mx::array& array : arrays) {
    serialized.state.push_back(to_tensor(array));
  }
  check_serialized(serialized);
  if (serialized.kind == "CacheList") {
    return list_from_state(std::move(serialized));
  }
  auto cache = make_blank(serialized.kind);
  cache->set_state(std::move(arrays));
  cache->set_meta_state(serialized.meta);
  return cache;
}

std::vector<std::unique_ptr<Cache>> make_prompt_cache(int layers, std::optional<int> window) {
  const int rows = std::max(window.value_or(0), 0);
  const int keep = std::clamp(rows - 1, 0, kRotatingDefaultKeep);
  std::vector<std::unique_ptr<Cache>> caches;
  for (int i = 0; i < layers; ++i) {
    if (window) {
      caches.push_back(std::make_unique<RotatingKVCache>(rows, keep));
    } else {
      caches.push_back(std::make_unique<KVCache>());
    }
  }
  return caches;
}

}  // namespace saker::cache::kinds
