// SPDX-License-Identifier: Apache-2.0
#include "saker/caches/cache.h"

#include "saker/base/error.h"
#include "saker/cache/host_arrays.h"
#include "saker/cache/serialized.h"
#include "saker/caches/arrays.h"
#include "saker/caches/batch.h"
#include "saker/caches/batch_rotating.h"
#include "saker/caches/cache_list.h"
#include "saker/caches/kv.h"
#include "saker/caches/quantized.h"
#include "saker/caches/rotating.h"
#include "saker/caches/rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace saker::caches {
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
  int rows = static_cast<int>(cache::meta_integer(meta[0], "QuantizedKVCache: offset"));
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

std::unique_ptr<Cache> list_from_state(cache::SerializedCache list) {
  std::vector<std::shared_ptr<Cache>> children;
  for (cache::SerializedCache& child : cache::split_cache_list(std::move(list))) {
    children.push_back(from_state(std::move(child)));
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
  cache::SerializedCache serialized;
  serialized.kind = cache::canonical_kind(kind);
  if (serialized.kind == "QuantizedKVCache") {
    converge(arrays, meta);
  }
  serialized.meta = std::move(meta);
  for (const mx::array& array : arrays) {
    serialized.state.push_back(cache::to_tensor(array));
  }
  cache::check_serialized(serialized);
  if (serialized.kind == "CacheList") {
    return list_from_state(std::move(serialized));
  }
  auto cache = make_blank(serialized.kind);
  cache->set_state(std::move(arrays));
  cache->set_meta_state(serialized.meta);
  return cache;
}

std::unique_ptr<Cache> from_state(cache::SerializedCache values) {
  std::vector<mx::array> arrays;
  arrays.reserve(values.state.size());
  for (const Tensor& tensor : values.state) {
    arrays.push_back(cache::to_array(tensor));
  }
  return from_state(values.kind, std::move(arrays), std::move(values.meta));
}

cache::SerializedCache to_serialized(const Cache& cache) {
  cache::SerializedCache values;
  values.kind = cache.kind();
  for (const mx::array& array : cache.state()) {
    values.state.push_back(cache::to_tensor(array));
  }
  values.meta = cache.meta_state();
  return values;
}

}  // namespace saker::caches
