// SPDX-License-Identifier: Apache-2.0
#include "saker/cache/snapshot.h"

#include "saker/base/error.h"

#include <algorithm>
#include <cassert>

namespace saker::cache {
namespace {

template <typename Snapshot>
std::size_t bytes_of(const Snapshot& rows) {
  SharedBytes total;
  rows.for_each_block([&](const kernels::KvBlock& block) { total.add(block); });
  return total.bytes();
}

}  // namespace

std::pair<LayerSnapshotPtr, LayerSnapshotPtr> split(const LayerSnapshotPtr& rows, std::int64_t at) {
  if (rows == nullptr || at <= rows->first()) {
    return {nullptr, rows};
  }
  if (at >= rows->last()) {
    return {rows, nullptr};
  }
  return {rows->slice(rows->first(), at), rows->slice(at, rows->last())};
}

LayerSnapshotPtr merge(const LayerSnapshotPtr& parent, const LayerSnapshotPtr& child) {
  if (parent == nullptr || child == nullptr) {
    return nullptr;
  }
  require(
      parent->last() == child->first(),
      ErrorCode::kInvalidArgument,
      "[snapshot] rows up to {} cannot be joined with rows from {}",
      parent->last(),
      child->first()
  );
  return parent->joined(*child);
}

std::size_t LayerSnapshot::nbytes() const {
  return bytes_of(*this);
}

SequenceSnapshot::SequenceSnapshot(std::vector<LayerSnapshotPtr> layers)
    : layers_(std::move(layers)) {
  assert(!layers_.empty());
  assert(std::ranges::all_of(layers_, [&](const LayerSnapshotPtr& layer) {
    return layer != nullptr && layer->first() == first() && layer->last() == last();
  }));
}

SequenceSnapshot SequenceSnapshot::slice(std::int64_t from, std::int64_t to) const {
  std::vector<LayerSnapshotPtr> layers;
  layers.reserve(layers_.size());
  for (const auto& layer : layers_) {
    layers.push_back(layer->slice(from, to));
  }
  return SequenceSnapshot(std::move(layers));
}

SequenceSnapshot SequenceSnapshot::joined(const SequenceSnapshot& next) const {
  assert(next.layers_.size() == layers_.size() && next.first() == last());
  std::vector<LayerSnapshotPtr> layers;
  layers.reserve(layers_.size());
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    layers.push_back(layers_[i]->joined(*next.layers_[i]));
  }
  return SequenceSnapshot(std::move(layers));
}

void SequenceSnapshot::for_each_block(const kernels::BlockVisitor& visit) const {
  for (const auto& layer : layers_) {
    layer->for_each_block(visit);
  }
}

std::size_t SequenceSnapshot::nbytes() const {
  return bytes_of(*this);
}

void SharedBytes::add(const kernels::KvBlock& block) {
  if (++holders_[block.data] == 1) {
    bytes_ += block.bytes;
  }
}

void SharedBytes::remove(const kernels::KvBlock& block) {
  const auto found = holders_.find(block.data);
  assert(found != holders_.end());
  if (--found->second == 0) {
    holders_.erase(found);
    bytes_ -= block.bytes;
  }
}

}  // namespace saker::cache
