// SPDX-License-Identifier: Apache-2.0
#include "saker/load/cache_layout.h"

#include "saker/base/error.h"
#include "saker/load/files/host_rows.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace saker::load {
namespace {

using cache::SerializedCache;

const CacheNode& none() {
  static const CacheNode node;
  return node;
}

[[noreturn]] void fail(std::string_view problem) {
  throw Error(ErrorCode::kCorruptData, std::string(problem));
}

// The items of a state tuple of `count` values; all None if the layer has no value at all.
class Fields {
 public:
  Fields(const CacheNode& node, std::size_t count) : count_(count) {
    if (const auto* list = node.list(); list != nullptr && list->size() == count) {
      items_ = *list;
    } else if (!node.is_none()) {
      fail(fmt::format("its state is not a list of {} values", count));
    }
  }

  const CacheNode& operator[](std::size_t index) const {
    return items_.empty() ? none() : items_[index];
  }

  bool has(std::size_t index) const { return !(*this)[index].is_none(); }

  const Tensor& tensor(std::size_t index) const {
    const Tensor* tensor = (*this)[index].tensor();
    if (tensor == nullptr) {
      fail(fmt::format("value {} of {} is not an array", index, count_));
    }
    return *tensor;
  }

  std::string integer(std::size_t index) const {
    const auto* number = std::get_if<std::int64_t>(&(*this)[index].value);
    if (number == nullptr) {
      fail(fmt::format("value {} of {} is not an integer", index, count_));
    }
    return fmt::to_string(*number);
  }

 private:
  std::size_t count_;
  std::span<const CacheNode> items_;
};

// Keys and values, or other parts, cut to their first `count` rows; no arrays for no rows.
std::vector<Tensor> cut_rows(std::vector<Tensor> parts, std::string_view count_text) {
  const std::int64_t count = cache::meta_integer(count_text, "the number of rows");
  for (Tensor& part : parts) {
    if (part.shape.size() != 4) {
      fail(fmt::format("an array of {} dimensions, expected [B, H_kv, L, D]", part.shape.size()));
    }
    if (count < 0 || count > part.shape[2]) {
      fail(fmt::format("{} rows are used of a buffer of {}", count, part.shape[2]));
    }
    if (count > 0) {
      part = first_rows(part, count);
    }
  }
  return count == 0 ? std::vector<Tensor>{} : parts;
}

// The arrays of a flat or nested list, in order.
void flatten(const CacheNode& node, std::vector<Tensor>& arrays) {
  if (const Tensor* tensor = node.tensor()) {
    arrays.push_back(*tensor);
  } else if (const auto* list = node.list()) {
    for (const CacheNode& item : *list) {
      flatten(item, arrays);
    }
  } else if (!node.is_none()) {
    fail("a number or text among its arrays");
  }
}

std::vector<Tensor> flattened(const CacheNode& node) {
  std::vector<Tensor> arrays;
  flatten(node, arrays);
  return arrays;
}

// One integer per row, "1,0"; "" for None and for an array without elements.
std::string positions_text(const CacheNode& node) {
  if (node.is_none()) {
    return "";
  }
  const Tensor* tensor = node.tensor();
  if (tensor != nullptr && tensor->element_count() == 0) {
    return "";
  }
  const auto values = tensor == nullptr ? std::nullopt : to_integers(*tensor);
  if (!values || tensor->shape.size() != 1) {
    fail("its positions are not a list of integers");
  }
  return fmt::format("{}", fmt::join(*values, ","));
}

// Reads slots, some of them None, with left padding and lengths.
void read_slots(
    SerializedCache& cache, const CacheNode& slots, std::array<std::string, 2> positions
) {
  const auto* list = slots.list();
  if (list == nullptr && !slots.is_none()) {
    fail("its slots are not a list");
  }
  std::vector<std::size_t> present;
  for (std::size_t i = 0; list != nullptr && i < list->size(); ++i) {
    const CacheNode& slot = (*list)[i];
    if (slot.is_none()) {
      continue;
    }
    if (slot.tensor() == nullptr) {
      fail("a slot that is no array");
    }
    present.push_back(i);
    cache.state.push_back(*slot.tensor());
  }
  cache.meta = {
      fmt::to_string(list == nullptr ? 0 : list->size()),
      fmt::format("{}", fmt::join(present, ",")),
      std::move(positions[0]),
      std::move(positions[1]),
  };
}

std::vector<Tensor> pair_of(const Fields& fields) {
  return {fields.tensor(0), fields.tensor(1)};
}

SerializedCache current_list(const CacheNode& state);

void read_current_batch(SerializedCache& cache, const CacheNode& state) {
  const bool rotating = cache.kind == "BatchRotatingKVCache";
  const Fields fields(state, rotating ? 8 : 5);
  if (fields.has(0)) {
    std::string rows = fields.integer(rotating ? 5 : 4);
    if (rotating && fields.tensor(0).shape.size() == 4) {
      const auto offset = cache::meta_integer(rows, "BatchRotatingKVCache: offset");
      rows = fmt::to_string(std::min<std::int64_t>(offset, fields.tensor(0).shape[2]));
    }
    cache.state = cut_rows(pair_of(fields), rows);
    if (!cache.state.empty()) {
      cache.state.push_back(fields.tensor(2));
      cache.state.push_back(fields.tensor(3));
    }
  }
  if (rotating) {
    const bool* rotated = std::get_if<bool>(&fields[7].value);
    if (rotated == nullptr) {
      fail("value 7 of 8 is not true or false");
    }
    const std::string_view text = *rotated ? "true" : "false";
    cache.meta = {fields.integer(4), fields.integer(5), fields.integer(6), std::string(text)};
  }
}

void read_current_rotating(SerializedCache& cache, const CacheNode& state) {
  const Fields fields(state, 6);
  cache.meta = {fields.integer(3), fields.integer(4), fields.integer(2), fields.integer(5)};
  if (!fields.has(0)) {
    return;
  }
  const auto pair = pair_of(fields);
  const std::int64_t offset = cache::meta_integer(cache.meta[2], "RotatingKVCache: offset");
  const std::int64_t held = pair[0].shape.size() == 4 ? pair[0].shape[2] : 0;
  cache.state = cut_rows(pair, fmt::to_string(std::min(offset, held)));
}

void read_current_chunked(SerializedCache& cache, const CacheNode& state) {
  const Fields fields(state, 5);
  const auto start = cache::meta_integer(fields.integer(4), "ChunkedKVCache: start_position");
  const auto offset = cache::meta_integer(fields.integer(2), "ChunkedKVCache: offset");
  cache.meta = {fields.has(3) ? fields.integer(3) : "None", fmt::to_string(start)};
  if (fields.has(0)) {
    cache.state = cut_rows(pair_of(fields), fmt::to_string(offset - start));
  }
}

// Our own format: keys, values, then the meta values.
void read_quantized_ring(SerializedCache& cache, const CacheNode& state) {
  const Fields fields(state, 8);
  for (std::size_t i = 2; i < 8; ++i) {
    cache.meta.push_back(fields.integer(i));
  }
  cache.state = flattened(fields[0]);
  flatten(fields[1], cache.state);
}

SerializedCache read_current(std::string_view class_name, const CacheNode& state) {
  SerializedCache cache;
  cache.kind = cache::canonical_kind(class_name);
  if (cache.kind == "KVCache") {
    if (class_name == "ConcatenateKVCache") {
      cache.state = flattened(state);
      return cache;
    }
    const Fields fields(state, 3);
    if (fields.has(0)) {
      cache.state = cut_rows(pair_of(fields), fields.integer(2));
    }
  } else if (cache.kind == "RotatingKVCache") {
    read_current_rotating(cache, state);
  } else if (cache.kind == "ChunkedKVCache") {
    read_current_chunked(cache, state);
  } else if (cache.kind == "QuantizedKVCache") {
    const Fields fields(state, 5);
    cache.meta = {fields.integer(2), fields.integer(3), fields.integer(4)};
    if (fields.has(0)) {
      auto parts = flattened(fields[0]);
      flatten(fields[1], parts);
      cache.state = cut_rows(std::move(parts), cache.meta[0]);
    }
  } else if (cache.kind == "QuantizedRotatingKVCache") {
    read_quantized_ring(cache, state);
  } else if (cache.kind == "ArraysCache" || cache.kind == "MambaCache") {
    const Fields fields(state, 3);
    read_slots(cache, fields[0], {positions_text(fields[1]), positions_text(fields[2])});
  } else if (cache.kind == "CacheList") {
    cache = current_list(state);
  } else {
    read_current_batch(cache, state);
  }
  return cache;
}

SerializedCache current_list(const CacheNode& state) {
  std::vector<SerializedCache> children;
  if (const auto* list = state.list()) {
    for (const CacheNode& item : *list) {
      const Fields child(item, 2);
      if (child[1].text() == nullptr) {
        fail("a child's class is not text");
      }
      children.push_back(read_current(*child[1].text(), child[0]));
    }
  } else if (!state.is_none()) {
    fail("its children are not a list");
  }
  return cache::join_cache_list(children);
}

// The meta strings of one cache; a single empty text means none.
std::vector<std::string> meta_strings(const CacheNode& meta) {
  std::vector<std::string> strings;
  if (const std::string* text = meta.text()) {
    strings.push_back(*text);
  } else if (const auto* list = meta.list()) {
    for (const CacheNode& item : *list) {
      if (item.text() == nullptr) {
        fail("its meta values are nested");
      }
      strings.push_back(*item.text());
    }
  }
  if (strings.size() == 1 && strings[0].empty()) {
    strings.clear();
  }
  return strings;
}

SerializedCache read_classic(
    std::string_view class_name, const CacheNode& state, const CacheNode& meta, int nesting
);

CacheNode text_list(const std::vector<std::string>& strings) {
  CacheNode::List list;
  for (const std::string& text : strings) {
    list.push_back({text});
  }
  return {std::move(list)};
}

// Children are framed in flat lists; each is then read as a layer of its own.
SerializedCache read_framed_list(const CacheNode& state, const CacheNode& meta, int nesting) {
  SerializedCache list{"CacheList", flattened(state), meta_strings(meta)};
  std::vector<SerializedCache> children;
  for (SerializedCache& child : cache::split_cache_list(std::move(list))) {
    CacheNode::List arrays;
    for (Tensor& tensor : child.state) {
      arrays.push_back({std::move(tensor)});
    }
    const CacheNode child_state = arrays.empty() ? CacheNode{} : CacheNode{std::move(arrays)};
    children.push_back(read_classic(child.kind, child_state, text_list(child.meta), nesting + 1));
  }
  return cache::join_cache_list(children);
}

// mlx-lm's format: meta holds the children's classes beside their metas.
SerializedCache read_nested_list(const CacheNode& state, const CacheNode& meta, int nesting) {
  const Fields metas(meta, 2);
  const std::vector<std::string> classes = meta_strings(metas[0]);
  std::vector<SerializedCache> children;
  for (std::size_t i = 0; i < classes.size(); ++i) {
    const auto item = [i](const CacheNode& node) {
      const auto* list = node.list();
      return list != nullptr && i < list->size() ? (*list)[i] : none();
    };
    children.push_back(read_classic(classes[i], item(state), item(metas[1]), nesting + 1));
  }
  return cache::join_cache_list(children);
}

SerializedCache read_classic(
    std::string_view class_name, const CacheNode& state, const CacheNode& meta, int nesting
) {
  if (nesting > cache::kMaxCacheNesting) {
    fail(fmt::format("nested deeper than {}", cache::kMaxCacheNesting));
  }
  SerializedCache cache;
  cache.kind = cache::canonical_kind(class_name);
  if (cache.kind == "CacheList") {
    const auto* list = meta.list();
    const bool nested = list != nullptr && !list->empty() && list->front().list() != nullptr;
    return nested ? read_nested_list(state, meta, nesting) : read_framed_list(state, meta, nesting);
  }
  cache.meta = meta_strings(meta);
  const auto* items = state.list();
  if (cache.kind == "ArraysCache" || cache.kind == "MambaCache") {
    if (items != nullptr && items->size() == 3 && items->front().list() != nullptr) {
      read_slots(cache, (*items)[0], {positions_text((*items)[1]), positions_text((*items)[2])});
    } else {
      cache.state = flattened(state);
    }
    return cache;
  }
  cache.state = flattened(state);
  if (cache.kind == "RotatingKVCache" && cache.meta.size() >= 5 && cache.meta.size() <= 7) {
    // mlx-swift's keep, max_size, step, offset, idx, and further values of its writer.
    cache.meta = {cache.meta[0], cache.meta[1], cache.meta[3], cache.meta[4]};
  }
  if (cache.kind == "QuantizedKVCache") {
    if (cache.meta.size() == 4) {
      cache.meta.erase(cache.meta.begin());  // mlx-swift's step.
    }
    if (!cache.state.empty() && !cache.meta.empty()) {
      cache.state = cut_rows(std::move(cache.state), cache.meta[0]);
    }
  }
  return cache;
}

std::int64_t row_count(const SerializedCache& cache) {
  return cache.state.empty() ? 0 : cache.state[0].shape[2];
}

CacheNode number(std::string_view text) {
  return {cache::meta_integer(text, "cache")};
}

CacheNode positions(const std::optional<std::vector<std::int64_t>>& values) {
  if (!values) {
    return {};
  }
  return {int32_tensor({static_cast<std::int64_t>(values->size())}, *values)};
}

CacheNode part(const SerializedCache& cache, std::size_t index) {
  return cache.state.empty() ? CacheNode{} : CacheNode{cache.state[index]};
}

// The parts of the keys or of the values, with or without biases.
CacheNode codes(const SerializedCache& cache, std::size_t side) {
  const std::size_t count = cache.state.size() / 2;
  CacheNode::List parts;
  for (std::size_t i = 0; i < count; ++i) {
    parts.push_back({cache.state[side * count + i]});
  }
  return parts.empty() ? CacheNode{} : CacheNode{std::move(parts)};
}

CacheNode::List current_slots(const SerializedCache& cache) {
  const cache::SlotLayout layout = cache::slot_layout(cache.meta, cache.state.size());
  CacheNode::List slots(layout.slots);
  for (std::size_t i = 0; i < layout.present.size(); ++i) {
    slots[static_cast<std::size_t>(layout.present[i])] = {cache.state[i]};
  }
  return {{std::move(slots)}, positions(layout.left_padding), positions(layout.lengths)};
}

CacheNode::List current_batch(const SerializedCache& cache) {
  CacheNode::List values = {part(cache, 0), part(cache, 1), part(cache, 2), part(cache, 3)};
  if (cache.state.empty()) {
    values[2] = values[3] = {int32_tensor({0}, {})};
  }
  if (cache.kind == "BatchKVCache") {
    values.push_back({row_count(cache)});
    return values;
  }
  for (std::size_t i = 0; i < 3; ++i) {
    values.push_back(number(cache.meta[i]));
  }
  values.push_back({cache::meta_bool(cache.meta[3], "rotated")});
  return values;
}

}  // namespace

SerializedCache from_current(std::string_view class_name, const CacheNode& state) {
  return read_current(class_name, state);
}

SerializedCache from_classic(
    std::string_view class_name, const CacheNode& state, const CacheNode& meta
) {
  return read_classic(class_name, state, meta, 0);
}

std::string_view current_class(std::string_view kind) {
  return kind == "MambaCache" ? "ArraysCache" : kind;
}

CacheNode to_current(const SerializedCache& cache) {
  const auto& meta = cache.meta;
  if (cache.kind == "KVCache") {
    return {CacheNode::List{part(cache, 0), part(cache, 1), {row_count(cache)}}};
  }
  if (cache.kind == "RotatingKVCache") {
    return {CacheNode::List{
        part(cache, 0),
        part(cache, 1),
        number(meta[2]),
        number(meta[0]),
        number(meta[1]),
        number(meta[3]),
    }};
  }
  if (cache.kind == "ChunkedKVCache") {
    const std::int64_t start = cache::meta_integer(meta[1], "start_position");
    const CacheNode chunk_size = meta[0] == "None" ? CacheNode{} : number(meta[0]);
    return {CacheNode::List{
        part(cache, 0), part(cache, 1), {start + row_count(cache)}, chunk_size, {start}
    }};
  }
  if (cache.kind == "QuantizedKVCache") {
    return {CacheNode::List{
        codes(cache, 0), codes(cache, 1), number(meta[0]), number(meta[1]), number(meta[2])
    }};
  }
  if (cache.kind == "QuantizedRotatingKVCache") {
    CacheNode::List values = {codes(cache, 0), codes(cache, 1)};
    for (const std::string& value : meta) {
      values.push_back(number(value));
    }
    return {std::move(values)};
  }
  if (cache.kind == "CacheList") {
    CacheNode::List children;
    for (const SerializedCache& child : cache::split_cache_list(cache)) {
      children.push_back(
          {CacheNode::List{to_current(child), {std::string(current_class(child.kind))}}}
      );
    }
    return {std::move(children)};
  }
  if (cache.kind == "BatchKVCache" || cache.kind == "BatchRotatingKVCache") {
    return {current_batch(cache)};
  }
  return {current_slots(cache)};
}

}  // namespace saker::load
