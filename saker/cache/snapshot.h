// SPDX-License-Identifier: Apache-2.0
#pragma once

// Rows of a sequence at one moment, to go back to or to share. Snapshots are immutable and share
// memory with caches and other snapshots that have the same rows. On CPU a snapshot costs no memory
// of its own until a cache overwrites or drops one of its pages.
//
// Threading: one thread at a time takes, cuts and joins snapshots. Any thread may read a snapshot's
// blocks, since no cache writes to a page that a snapshot holds. Any thread may destroy a snapshot
// of pages.

#include "saker/kernels/storage/kv_store.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

namespace saker::cache {

class LayerSnapshot;
using LayerSnapshotPtr = std::shared_ptr<const LayerSnapshot>;

// The blocks of a layer's snapshot, read from a file.
struct BlockSource {
  struct Block {
    std::int64_t index = 0;
    std::size_t bytes = 0;
  };

  std::vector<Block> blocks;
  kernels::BlockReader read;  // Returns the blocks one by one.
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

  // Rows [from, to), sharing memory. REQUIRES: first() <= from < to <= last().
  virtual LayerSnapshotPtr slice(std::int64_t from, std::int64_t to) const = 0;
  // These rows and then `next`, which follows them in one sequence. REQUIRES: equal kind and shape,
  // next.first() == last().
  virtual LayerSnapshotPtr joined(const LayerSnapshot& next) const = 0;
  virtual void for_each_block(const kernels::BlockVisitor& visit) const = 0;
  // Bytes of all its blocks, shared ones included. The last holder frees them.
  std::size_t nbytes() const;

 private:
  std::int64_t first_;
  std::int64_t last_;
};

// Cuts [a, c) at b into [a, b) and [b, c). An empty side is null.
std::pair<LayerSnapshotPtr, LayerSnapshotPtr> split(const LayerSnapshotPtr& rows, std::int64_t at);
// Joins [a, b) and [b, c) to [a, c); null if one is null. Throws kInvalidArgument unless they meet.
LayerSnapshotPtr merge(const LayerSnapshotPtr& parent, const LayerSnapshotPtr& child);

// Rows [first, last) of all layers.
class SequenceSnapshot {
 public:
  // REQUIRES: at least one layer, none null, all with the same rows.
  explicit SequenceSnapshot(std::vector<LayerSnapshotPtr> layers);

  std::int64_t first() const { return layers_.front()->first(); }

  std::int64_t last() const { return layers_.front()->last(); }

  const std::vector<LayerSnapshotPtr>& layers() const { return layers_; }

  SequenceSnapshot slice(std::int64_t from, std::int64_t to) const;
  SequenceSnapshot joined(const SequenceSnapshot& next) const;
  void for_each_block(const kernels::BlockVisitor& visit) const;
  // Bytes of the layers' blocks; each block counts once.
  std::size_t nbytes() const;

 private:
  std::vector<LayerSnapshotPtr> layers_;
};

// Bytes of memory blocks with several holders; each block counts once.
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
