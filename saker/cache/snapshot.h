// SPDX-License-Identifier: Apache-2.0
#pragma once

// Rows of a sequence as they were at one moment, to go back to or to share: snapshots are immutable
// and hold their memory together with the caches and other snapshots that have the same rows. On
// CPU a snapshot costs no memory of its own until a cache overwrites or drops one of its pages.
//
// Threading: one thread at a time takes, cuts and joins; reading the blocks of a snapshot is safe
// on any thread, since no cache writes to a page that a snapshot holds, and a snapshot of pages may
// end on any.

#include "saker/kernels/kv_store.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

namespace saker::cache {

class LayerSnapshot;
using LayerSnapshotPtr = std::shared_ptr<const LayerSnapshot>;

// The blocks of a layer's snapshot as a file has them.
struct BlockSource {
  struct Block {
    std::int64_t index = 0;
    std::size_t bytes = 0;
  };

  std::vector<Block> blocks;
  kernels::BlockReader read;  // Gives one after the other.
};

// Rows [first, last) of one layer. Rows that the layer had already dropped are absent.
class LayerSnapshot {
 public:
  LayerSnapshot(std::int64_t first, std::int64_t last) : first_(first), last_(last) {}

  LayerSnapshot(const LayerSnapshot&) = delete;
  LayerSnapshot& operator=(const LayerSnapshot&) = delete;
  virtual ~LayerSnapshot() = default;

  std::int64_t first() const { return first_; }

  std::int64_t last() const { return last_; }

  // Rows [from, to), the memory shared. REQUIRES: first() <= from < to <= last().
  virtual LayerSnapshotPtr slice(std::int64_t from, std::int64_t to) const = 0;
  // These rows and then those of `next`, which follow them in one sequence. REQUIRES: the same kind
  // and shape, next.first() == last().
  virtual LayerSnapshotPtr joined(const LayerSnapshot& next) const = 0;
  virtual void for_each_block(const kernels::BlockVisitor& visit) const = 0;
  // Bytes of its blocks, those that others share too. They are given back with the last holder.
  std::size_t nbytes() const;

 private:
  std::int64_t first_;
  std::int64_t last_;
};

// [a, c) cut at b into [a, b) and [b, c). Where nothing lies on a side, that side is null.
std::pair<LayerSnapshotPtr, LayerSnapshotPtr> split(const LayerSnapshotPtr& rows, std::int64_t at);
// [a, b) and [b, c) as [a, c); null where one is null. Throws kInvalidArgument unless they meet.
LayerSnapshotPtr merge(const LayerSnapshotPtr& parent, const LayerSnapshotPtr& child);

// Rows [first, last) of all layers.
class SequenceSnapshot {
 public:
  // REQUIRES: at least one layer, none null, all of the same rows.
  explicit SequenceSnapshot(std::vector<LayerSnapshotPtr> layers);

  std::int64_t first() const { return layers_.front()->first(); }

  std::int64_t last() const { return layers_.front()->last(); }

  const std::vector<LayerSnapshotPtr>& layers() const { return layers_; }

  SequenceSnapshot slice(std::int64_t from, std::int64_t to) const;
  SequenceSnapshot joined(const SequenceSnapshot& next) const;
  void for_each_block(const kernels::BlockVisitor& visit) const;
  // Bytes of the layers' blocks, each counted once.
  std::size_t nbytes() const;

 private:
  std::vector<LayerSnapshotPtr> layers_;
};

// Bytes of memory blocks that several holders may share, each block counted once.
class SharedBytes {
 public:
  void add(const kernels::KvBlock& block);
  // REQUIRES: the block was added.
  void remove(const kernels::KvBlock& block);

  std::size_t bytes() const { return bytes_; }

 private:
  std::unordered_map<const void*, int> holders_;
  std::size_t bytes_ = 0;
};

}  // namespace saker::cache
