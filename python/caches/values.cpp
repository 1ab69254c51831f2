// SPDX-License-Identifier: Apache-2.0
#include "python/caches/values.h"

#include "saker/cache/host_arrays.h"
#include "saker/caches/arrays.h"
#include "saker/caches/batch.h"
#include "saker/caches/batch_rotating.h"
#include "saker/caches/cache_list.h"
#include "saker/load/cache_layout.h"

#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace nb = nanobind;

namespace saker::python {
namespace {

constexpr int kMaxNesting = 2 * cache::kMaxCacheNesting;

// A meta value: an integer, a truth value or None.
nb::object meta_object(const std::string& text) {
  if (text == "None") {
    return nb::none();
  }
  if (text == "true" || text == "false") {
    return nb::bool_(text == "true");
  }
  return nb::int_(cache::meta_integer(text, "a meta value"));
}

nb::object part(const std::vector<mx::array>& arrays, std::size_t index) {
  return index < arrays.size() ? nb::cast(arrays[index]) : nb::none();
}

// Weight, scales and biases of the keys (side 0) or of the values; None without rows.
nb::object codes(const std::vector<mx::array>& arrays, std::size_t side) {
  if (arrays.empty()) {
    return nb::none();
  }
  const std::size_t count = arrays.size() / 2;
  nb::list parts;
  for (std::size_t i = 0; i < count; ++i) {
    parts.append(arrays[side * count + i]);
  }
  return nb::tuple(parts);
}

nb::object positions_or_none(const std::vector<int>& values) {
  return values.empty() ? nb::none() : nb::cast(positions(values));
}

nb::object slots_state(const caches::ArraysCache& cache) {
  nb::list slots;
  for (std::size_t i = 0; i < cache.slot_count(); ++i) {
    slots.append(cache.get(i));
  }
  return nb::make_tuple(
      slots, positions_or_none(cache.left_padding()), positions_or_none(cache.lengths())
  );
}

nb::object list_state(const caches::CacheList& list) {
  nb::list children;
  for (const CachePtr& child : list.children()) {
    children.append(nb::make_tuple(state_of(*child), std::string(child->reference_class_name())));
  }
  return children;
}

// offset and left_padding, also of a cache without rows.
nb::list batch_state(
    const caches::Cache& cache, const std::vector<int>& offset, const std::vector<int>& padding
) {
  const auto arrays = cache.state();
  nb::list values;
  values.append(part(arrays, 0));
  values.append(part(arrays, 1));
  values.append(positions(offset));
  values.append(positions(padding));
  return values;
}

load::CacheNode node_of(nb::handle value, int nesting) {
  require(nesting <= kMaxNesting, ErrorCode::kCorruptData, "a state that is nested too deep");
  mx::array* array = nullptr;
  if (value.is_none()) {
    return {};
  }
  if (nb::try_cast(value, array)) {
    return {cache::to_tensor(*array)};
  }
  if (nb::isinstance<nb::bool_>(value)) {
    return {nb::cast<bool>(value)};
  }
  if (nb::isinstance<nb::int_>(value)) {
    return {nb::cast<std::int64_t>(value)};
  }
  if (nb::isinstance<nb::str>(value)) {
    return {nb::cast<std::string>(value)};
  }
  if (nb::isinstance<nb::list>(value) || nb::isinstance<nb::tuple>(value)) {
    load::CacheNode::List items;
    for (const nb::handle item : nb::borrow<nb::sequence>(value)) {
      items.push_back(node_of(item, nesting + 1));
    }
    return {std::move(items)};
  }
  throw nb::type_error(fmt::format("a {} in a cache's state", nb::inst_name(value).c_str()).c_str()
  );
}

}  // namespace

nb::object mask_object(const caches::Mask& mask) {
  if (mask.array) {
    return nb::cast(*mask.array);
  }
  return mask.kind == caches::Mask::Kind::kCausal ? nb::object(nb::str("causal")) : nb::none();
}

std::vector<int> integers(nb::handle values, std::string_view what) {
  std::vector<int> result;
  mx::array* array = nullptr;
  if (nb::try_cast(values, array) && array->ndim() == 1 &&
      mx::issubdtype(array->dtype(), mx::integer)) {
    auto dense = mx::contiguous(mx::astype(*array, mx::int32));
    dense.eval();
    result.assign(dense.data<int>(), dense.data<int>() + dense.size());
    return result;
  }
  if (!nb::try_cast(values, result)) {
    throw nb::type_error(fmt::format("{}: expected a list of integers", what).c_str());
  }
  return result;
}

std::vector<int> integers_or_none(nb::handle values, std::string_view what) {
  return values.is_none() ? std::vector<int>{} : integers(values, what);
}

mx::array positions(const std::vector<int>& values) {
  return mx::array(values.begin(), {static_cast<int>(values.size())}, mx::int32);
}

nb::object state_of(const caches::Cache& cache) {
  if (const auto* list = cache.as_cache_list()) {
    return list_state(*list);
  }
  if (const auto* slots = dynamic_cast<const caches::ArraysCache*>(&cache)) {
    return slots_state(*slots);
  }
  const auto meta = cache.meta_state();
  nb::list values;
  if (const auto* batch = dynamic_cast<const caches::BatchKVCache*>(&cache)) {
    values = batch_state(cache, batch->batch_offset(), batch->left_padding());
    values.append(cache.offset());
    return nb::tuple(values);
  }
  if (const auto* ring = dynamic_cast<const caches::BatchRotatingKVCache*>(&cache)) {
    values = batch_state(cache, ring->batch_offset(), ring->left_padding());
    for (const std::string& value : meta) {
      values.append(meta_object(value));
    }
    return nb::tuple(values);
  }
  const auto arrays = cache.state();
  const bool quantized = cache.as_quantized() != nullptr;
  values.append(quantized ? codes(arrays, 0) : part(arrays, 0));
  values.append(quantized ? codes(arrays, 1) : part(arrays, 1));
  if (cache.kind() == "RotatingKVCache") {
    for (const std::size_t i : {2U, 0U, 1U, 3U}) {  // offset, keep, max_size, idx
      values.append(meta_object(meta[i]));
    }
    return nb::tuple(values);
  }
  if (!quantized) {
    values.append(cache.offset());
  }
  for (const std::string& value : meta) {
    values.append(meta_object(value));
  }
  return nb::tuple(values);
}

CachePtr from_state_of(std::string_view class_name, nb::handle state) {
  return caches::from_state(load::from_current(class_name, node_of(state, 0)));
}

}  // namespace saker::python
