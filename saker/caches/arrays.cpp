// SPDX-License-Identifier: Apache-2.0
#include "saker/caches/arrays.h"

#include "saker/base/error.h"
#include "saker/cache/serialized.h"
#include "saker/caches/rows.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace saker::caches {
namespace {

std::vector<int> narrowed(const std::optional<std::vector<std::int64_t>>& values) {
  std::vector<int> result;
  for (const std::int64_t value : values.value_or(std::vector<std::int64_t>{})) {
    result.push_back(static_cast<int>(value));
  }
  return result;
}

void filter_ints(std::vector<int>& values, std::span<const int> indices) {
  if (values.empty()) {
    return;
  }
  std::vector<int> kept;
  for (const int index : indices) {
    kept.push_back(values[static_cast<std::size_t>(index)]);
  }
  values = std::move(kept);
}

// Both batches' values; a batch without values has zeros.
std::vector<int> extended(
    std::vector<int> first, int first_batch, std::vector<int> second, int second_batch
) {
  if (first.empty() && second.empty()) {
    return {};
  }
  first.resize(static_cast<std::size_t>(first_batch));
  second.resize(static_cast<std::size_t>(second_batch));
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

mx::array zeros_like(const mx::array& array, int batch) {
  mx::Shape shape = array.shape();
  shape[0] = batch;
  return mx::zeros(shape, array.dtype());
}

mx::array row_of(const mx::array& array, int row) {
  return mx::take(array, mx::array({row}, {1}, mx::int32), 0);
}

}  // namespace

ArraysCache::ArraysCache(std::size_t slots, std::vector<int> left_padding, Label label)
    : left_padding_(std::move(left_padding)), label_(label) {
  require(
      slots <= cache::kMaxCacheSlots,
      ErrorCode::kInvalidArgument,
      "[ArraysCache] {} slots, expected at most {}",
      slots,
      cache::kMaxCacheSlots
  );
  slots_.resize(slots);
}

const std::optional<mx::array>& ArraysCache::get(std::size_t slot) const {
  require(
      slot < slots_.size(),
      ErrorCode::kInvalidArgument,
      "[ArraysCache] slot {} of {}",
      slot,
      slots_.size()
  );
  return slots_[slot];
}

void ArraysCache::set(std::size_t slot, mx::array value) {
  get(slot);
  require(value.ndim() > 0, ErrorCode::kInvalidArgument, "[ArraysCache] a slot needs a batch axis");
  slots_[slot] = std::move(value);
}

int ArraysCache::batch_size() const {
  for (const auto& slot : slots_) {
    if (slot) {
      return slot->shape(0);
    }
  }
  const auto& positions = left_padding_.empty() ? lengths_ : left_padding_;
  return positions.empty() ? 1 : static_cast<int>(positions.size());
}

void ArraysCache::finalize() {
  lengths_.clear();
  left_padding_.clear();
}

void ArraysCache::advance(int n) {
  for (std::vector<int>* positions : {&lengths_, &left_padding_}) {
    for (int& position : *positions) {
      position -= n;
    }
  }
}

void ArraysCache::filter(std::span<const int> batch_rows) {
  check_indices(batch_rows, batch_size());
  for (auto& slot : slots_) {
    if (slot) {
      slot = mx::take(*slot, to_array(batch_rows), 0);
    }
  }
  filter_ints(left_padding_, batch_rows);
  filter_ints(lengths_, batch_rows);
}

void ArraysCache::extend(const ArraysCache& other) {
  require(
      slots_.size() == other.slots_.size(),
      ErrorCode::kInvalidArgument,
      "[ArraysCache] {} slots extended by {}",
      slots_.size(),
      other.slots_.size()
  );
  const int batch = batch_size();
  const int other_batch = other.batch_size();
  std::vector<std::optional<mx::array>> slots;
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    const auto& a = slots_[i];
    const auto& b = other.slots_[i];
    if (!a && !b) {
      slots.emplace_back();
      continue;
    }
    slots.emplace_back(
        mx::concatenate({a ? *a : zeros_like(*b, batch), b ? *b : zeros_like(*a, other_batch)}, 0)
    );
  }
  slots_ = std::move(slots);
  left_padding_ = extended(left_padding_, batch, other.left_padding_, other_batch);
  lengths_ = extended(lengths_, batch, other.lengths_, other_batch);
}

ArraysCache ArraysCache::extract(int batch_row) const {
  check_indices(std::span(&batch_row, 1), batch_size());
  ArraysCache result(slots_.size(), {}, label_);
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    if (slots_[i]) {
      result.slots_[i] = row_of(*slots_[i], batch_row);
    }
  }
  return result;
}

ArraysCache ArraysCache::merge(std::span<const ArraysCache* const> caches) {
  ArraysCache result(caches.front()->slots_.size(), {}, caches.front()->label_);
  const auto is_empty = [](const ArraysCache* cache) { return cache->is_empty(); };
  if (std::ranges::all_of(caches, is_empty)) {
    result.left_padding_.resize(caches.size());
    return result;
  }
  for (const ArraysCache* cache : caches) {
    require(
        cache->slots_.size() == result.slots_.size(),
        ErrorCode::kInvalidArgument,
        "[ArraysCache] {} slots merged with {}",
        cache->slots_.size(),
        result.slots_.size()
    );
  }
  for (std::size_t i = 0; i < result.slots_.size(); ++i) {
    const auto first = std::ranges::find_if(caches, [&](const ArraysCache* cache) {
      return cache->slots_[i].has_value();
    });
    if (first == caches.end()) {
      continue;
    }
    std::vector<mx::array> rows;
    for (const ArraysCache* cache : caches) {
      const auto& slot = cache->slots_[i];
      rows.push_back(slot ? row_of(*slot, 0) : zeros_like(*(*first)->slots_[i], 1));
    }
    result.slots_[i] = mx::concatenate(rows, 0);
  }
  return result;
}

KeyValues ArraysCache::update(const mx::array& /*keys*/, const mx::array& /*values*/) {
  throw Error(ErrorCode::kUnsupported, "[ArraysCache] slots are set, rows cannot be appended");
}

std::vector<mx::array> ArraysCache::state() const {
  std::vector<mx::array> arrays;
  for (const auto& slot : slots_) {
    if (slot) {
      arrays.push_back(*slot);
    }
  }
  return arrays;
}

void ArraysCache::set_state(std::vector<mx::array> arrays) {
  const auto set = static_cast<std::size_t>(std::ranges::count_if(slots_, [](const auto& slot) {
    return slot.has_value();
  }));
  // If no slot is set, the arrays fill all slots, or define their number.
  if (set == 0 && (slots_.empty() || arrays.size() == slots_.size())) {
    slots_.assign(arrays.begin(), arrays.end());
    return;
  }
  require(
      arrays.size() == set,
      ErrorCode::kCorruptData,
      "[ArraysCache] {} arrays for {} slots that are set",
      arrays.size(),
      set
  );
  auto next = arrays.begin();
  for (auto& slot : slots_) {
    if (slot) {
      slot = std::move(*next++);
    }
  }
}

std::vector<std::string> ArraysCache::meta_state() const {
  std::vector<std::size_t> present;
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    if (slots_[i]) {
      present.push_back(i);
    }
  }
  return {
      fmt::to_string(slots_.size()),
      fmt::format("{}", fmt::join(present, ",")),
      fmt::format("{}", fmt::join(left_padding_, ",")),
      fmt::format("{}", fmt::join(lengths_, ",")),
  };
}

void ArraysCache::set_meta_state(const std::vector<std::string>& meta) {
  std::vector<mx::array> arrays = state();
  const cache::SlotLayout layout = cache::slot_layout(meta, arrays.size());
  std::vector<std::optional<mx::array>> slots(layout.slots);
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    slots[static_cast<std::size_t>(layout.present[i])] = std::move(arrays[i]);
  }
  slots_ = std::move(slots);
  left_padding_ = narrowed(layout.left_padding);
  lengths_ = narrowed(layout.lengths);
}

void ArraysCache::materialize() {
  mx::eval(state());
}

Mask ArraysCache::make_mask(int n, std::optional<int> /*window*/, MaskForm /*form*/) const {
  const auto position = mx::arange(0, n, mx::int32);
  std::optional<mx::array> mask;
  if (!left_padding_.empty()) {
    mask = mx::greater_equal(position, mx::expand_dims(to_array(left_padding_), 1));
  }
  if (!lengths_.empty()) {
    const auto within = mx::less(position, mx::expand_dims(to_array(lengths_), 1));
    mask = mask ? mx::logical_and(*mask, within) : within;
  }
  return {mask ? Mask::Kind::kArray : Mask::Kind::kNone, mask};
}

std::size_t ArraysCache::nbytes() const {
  return nbytes_of(state());
}

bool ArraysCache::is_empty() const {
  return slots_.empty() || !slots_.front();
}

std::unique_ptr<Cache> ArraysCache::copy() const {
  return std::make_unique<ArraysCache>(*this);
}

void ArraysCache::become(Cache& other) {
  *this = dynamic_cast<ArraysCache&>(other);
}

}  // namespace saker::caches
