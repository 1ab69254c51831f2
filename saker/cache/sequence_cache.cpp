// SPDX-License-Identifier: Apache-2.0
#include "saker/cache/sequence_cache.h"

#include "saker/base/error.h"

#include <spdlog/spdlog.h>

#include <algorithm>

namespace saker::cache {

SequenceCache::SequenceCache(std::vector<std::unique_ptr<LayerCache>> layers)
    : layers_(std::move(layers)) {
  require(!layers_.empty(), ErrorCode::kInvalidArgument, "[SequenceCache] no layers");
}

std::int64_t SequenceCache::offset() const {
  return layers_.front()->offset();
}

std::size_t SequenceCache::nbytes() const {
  std::size_t total = 0;
  for (const auto& layer : layers_) {
    total += layer->nbytes();
  }
  return total;
}

std::size_t SequenceCache::growth(std::int64_t row_count) const {
  std::size_t total = 0;
  for (const auto& layer : layers_) {
    total += layer->growth(row_count);
  }
  return total;
}

std::size_t SequenceCache::bytes_with(std::int64_t row_count, int step) const {
  std::size_t total = 0;
  for (const auto& layer : layers_) {
    total += layer->bytes_with(row_count, step);
  }
  return total;
}

bool SequenceCache::can_trim(std::int64_t count) const {
  return std::ranges::all_of(layers_, [&](const auto& layer) { return layer->can_trim(count); });
}

bool SequenceCache::trim(std::int64_t count) {
  if (!can_trim(count)) {
    return false;
  }
  for (const auto& layer : layers_) {
    layer->trim(count);
  }
  return true;
}

void SequenceCache::clear() {
  require(!begun_, ErrorCode::kInternal, "[SequenceCache] clear inside of a transaction");
  for (const auto& layer : layers_) {
    layer->clear();
  }
}

SequenceCache SequenceCache::copy() const {
  std::vector<std::unique_ptr<LayerCache>> layers;
  layers.reserve(layers_.size());
  for (const auto& layer : layers_) {
    layers.push_back(layer->copy());
  }
  return SequenceCache(std::move(layers));
}

std::optional<SequenceSnapshot> SequenceCache::snapshot(std::int64_t from) const {
  std::vector<LayerSnapshotPtr> rows;
  rows.reserve(layers_.size());
  for (const auto& layer : layers_) {
    auto part = layer->snapshot(from);
    const bool fits =
        part != nullptr &&
        (rows.empty() || (part->first() == rows[0]->first() && part->last() == rows[0]->last()));
    if (!fits) {
      return std::nullopt;
    }
    rows.push_back(std::move(part));
  }
  return SequenceSnapshot(std::move(rows));
}

std::int64_t SequenceCache::reach(const SequenceSnapshot& rows, std::int64_t target) const {
  if (rows.layers().size() != layers_.size()) {
    return -1;
  }
  // A layer that cannot reach the target lowers it for all layers.
  std::int64_t reached = target + 1;
  while (reached != target && target >= 0) {
    reached = target;
    for (std::size_t i = 0; i < layers_.size() && target >= 0; ++i) {
      target = layers_[i]->reach(*rows.layers()[i], target);
    }
  }
  return target;
}

bool SequenceCache::restore(const SequenceSnapshot& rows, std::int64_t target) {
  require(!begun_, ErrorCode::kInternal, "[SequenceCache] restore inside of a transaction");
  if (rows.layers().size() != layers_.size()) {
    return false;
  }
  auto restored = copy();
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    if (!restored.layers_[i]->restore(rows.layers()[i].get(), target)) {
      return false;
    }
  }
  layers_ = std::move(restored.layers_);
  return true;
}

bool SequenceCache::restores_anywhere() const {
  return std::ranges::all_of(layers_, [](const auto& layer) { return layer->restores_anywhere(); });
}

void SequenceCache::begin() {
  begun_ = offset();
  for (const auto& layer : layers_) {
    layer->begin();
  }
}

void SequenceCache::commit(std::int64_t count) {
  require(begun_.has_value(), ErrorCode::kInternal, "[SequenceCache] commit without a transaction");
  std::int64_t written = 0;
  for (const auto& layer : layers_) {
    written = std::max(written, layer->offset() - *begun_);
  }
  count = std::clamp<std::int64_t>(count, 0, written);
  // Never keeps rows of a pass that failed between two layers.
  const bool whole = std::ranges::all_of(layers_, [&](const auto& layer) {
    return layer->offset() - *begun_ >= count && layer->can_commit(count);
  });
  require(
      whole,
      ErrorCode::kInternal,
      "[SequenceCache] commit of {} rows that not all layers have or can keep",
      count
  );
  spdlog::trace("cache: {} rows committed behind {}", count, *begun_);
  for (const auto& layer : layers_) {
    layer->commit(count);
  }
  begun_.reset();
}

void SequenceCache::roll_back() {
  spdlog::trace("cache: back to {} rows", begun_.value_or(offset()));
  for (const auto& layer : layers_) {
    layer->roll_back();
  }
  begun_.reset();
}

}  // namespace saker::cache
