// SPDX-License-Identifier: Apache-2.0
#pragma once

// The state that one layer keeps for one sequence. One class per kind; names are those of mlx-lm.
//
// Positions are absolute: the first row ever written is 0. A change is a transaction: `begin`,
// write rows, then `commit(n)` for the first n of them or `roll_back`; without `begin` each write
// commits itself. Rows written in a transaction are visible to attention but not to `view()`.
// Threading: one thread at a time; between passes only (see kernels/kv_store.h).

#include "saker/cache/snapshot.h"
#include "saker/kernels/attend.h"
#include "saker/kernels/mx.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace saker::cache {

struct KeyValues {
  mx::array keys;    // [1, H_kv, S, D]
  mx::array values;  // [1, H_kv, S, D_v]
};

// The same as codes, scales and biases, as mx::quantize lays them out.
struct QuantizedKeyValues {
  kernels::QuantizedRows keys;  // [1, H_kv, S, ...]
  kernels::QuantizedRows values;
};

// What attention over n new rows has to mask beyond the cached rows.
struct Mask {
  enum class Kind : std::uint8_t { kNone, kCausal, kArray };

  Kind kind = Kind::kNone;
  std::optional<mx::array> array;  // Boolean [n, S], true where a row sees a key; kArray only.
};

class LayerCache {
 public:
  LayerCache() = default;
  LayerCache(const LayerCache&) = delete;
  LayerCache& operator=(const LayerCache&) = delete;
  virtual ~LayerCache() = default;

  // The class name that mlx-lm's files use: "KVCache", "RotatingKVCache", "QuantizedKVCache"; and
  // "QuantizedRotatingKVCache", which mlx-lm lacks.
  virtual std::string_view kind() const = 0;

  // Appends rows [1, H_kv, n, D] and gives all rows that a new one may see, oldest first.
  virtual KeyValues update(const mx::array& keys, const mx::array& values) = 0;

  // Reserves the next `row_count` positions for a fused attention pass, whose rows start at
  // `first_row` of the batch. Throws kCapacity without memory and then nothing has changed.
  virtual kernels::AttendSpan append(int first_row, int row_count) = 0;

  // The place of the last committed row, as row `row` of a pass that only reads: what attends there
  // sees what that row sees. Throws kInvalidArgument without rows, kUnsupported for kinds that keep
  // none.
  virtual kernels::AttendSpan last_row(int row) const;

  // Rows written so far, open transaction included: the position of the next row.
  virtual std::int64_t offset() const = 0;

  // Position that rotary embedding gives the next row.
  std::int64_t rope_offset() const { return offset(); }

  // Rows that stay visible, none when unbounded.
  virtual std::optional<int> max_size() const = 0;

  // Committed rows in time order (rings: the trailing window); empty caches give none.
  virtual std::optional<KeyValues> view() const = 0;

  // Bounds and positions as strings, for `SerializedCache`: none, or those of the kind when the
  // rows are those of `view()` or `quantized_view()`. Throws kUnsupported for codes that files do
  // not have.
  virtual std::vector<std::string> meta_state() const { return {}; }

  // Holds `rows` from now on, as `view()` gave them when `offset` rows were committed; other float
  // dtypes are converted. Throws kInvalidArgument for rows that do not fit, kUnsupported for kinds
  // that cannot, kCapacity; then nothing has changed. REQUIRES: no open transaction.
  virtual void assign(std::int64_t offset, const std::optional<KeyValues>& rows);
  // The same of `quantized_view()`, for a cache that keeps such codes.
  virtual void assign(std::int64_t offset, const QuantizedKeyValues& rows);

  // The same of a cache that keeps codes (`view` gives what they stand for); none for others.
  virtual std::optional<QuantizedKeyValues> quantized_view() const { return std::nullopt; }

  // Whether the last `count` rows can be forgotten with all earlier visible rows still there.
  virtual bool can_trim(std::int64_t count) const = 0;

  bool is_trimmable() const { return can_trim(1); }

  // Forgets up to `count` rows; returns how many. REQUIRES: no open transaction.
  virtual std::int64_t trim(std::int64_t count) = 0;
  // Forgets all rows and gives back their memory, where nothing else holds it. REQUIRES: no open
  // transaction.
  virtual void clear() = 0;
  // The mask for n new rows under an additional window (0: none), as mlx-lm's `make_mask` chooses
  // it.
  virtual Mask make_mask(int n, int window) const = 0;
  virtual std::size_t nbytes() const = 0;

  bool is_empty() const { return offset() == 0; }

  // A cache with the same rows; memory is shared until one of the two writes.
  virtual std::unique_ptr<LayerCache> copy() const = 0;

  // The committed rows from `from` on, below 0 counting as 0; null without such rows, and for kinds
  // that cannot be taken apart. No memory is copied on CPU.
  virtual LayerSnapshotPtr snapshot(std::int64_t /*from*/) const { return nullptr; }

  // Rows [first, last) out of the blocks of such a snapshot; null for kinds that cannot. Throws
  // kCorruptData for blocks that do not fit, kCapacity without memory, and what reading throws.
  virtual LayerSnapshotPtr snapshot_of(
      const BlockSource& /*blocks*/, std::int64_t /*first*/, std::int64_t /*last*/
  ) const {
    return nullptr;
  }

  // The largest position <= target that `restore` with this snapshot can reach; -1: none.
  virtual std::int64_t reach(const LayerSnapshot& /*rows*/, std::int64_t /*target*/) const {
    return -1;
  }

  // Goes to position `target`: back in the own rows (no snapshot), or replacing the rows from
  // rows->first() on by the snapshot's. False, and nothing has changed, where a row that is visible
  // from there is not held. REQUIRES: no open transaction.
  virtual bool restore(const LayerSnapshot* /*rows*/, std::int64_t /*target*/) { return false; }

  // Whether `restore` can go to any position whose rows a snapshot has; otherwise only to where
  // snapshots were taken.
  virtual bool restores_anywhere() const { return true; }

  virtual void begin() = 0;

  // Whether `commit` can keep the first `count` of the rows written since `begin`, which are at
  // least as many.
  virtual bool can_commit(std::int64_t /*count*/) const { return true; }

  // Keeps the first `count` rows written since `begin`, forgets the others: all of them where
  // `count` is more, none where it is below 0.
  virtual void commit(std::int64_t count) = 0;
  virtual void roll_back() = 0;
};

}  // namespace saker::cache
