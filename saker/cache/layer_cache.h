// SPDX-License-Identifier: Apache-2.0
#pragma once

// One layer's state for one sequence. There is one class per kind; the names are mlx-lm's.
//
// Positions are absolute: the first row ever written is 0. Changes are transactions: call `begin`,
// write rows, then `commit(n)` to keep the first n of them, or `roll_back`. Without `begin` each
// write commits itself. Rows of an open transaction are visible to attention but not to `view()`.
// Threading: one thread at a time; between passes only (see kernels/kv_store.h).

#include "saker/cache/attention_inputs.h"
#include "saker/cache/snapshot.h"
#include "saker/kernels/mx.h"
#include "saker/kernels/ops/attend.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace saker::cache {

// As KeyValues, but as codes, scales and biases in the layout of mx::quantize.
struct QuantizedKeyValues {
  kernels::QuantizedRows keys;  // [1, H_kv, S, ...]
  kernels::QuantizedRows values;
};

class LayerCache {
 public:
  LayerCache() = default;
  LayerCache(const LayerCache&) = delete;
  LayerCache& operator=(const LayerCache&) = delete;
  virtual ~LayerCache() = default;

  // The class name in mlx-lm's files: "KVCache", "RotatingKVCache" or "QuantizedKVCache"; also
  // "QuantizedRotatingKVCache", which mlx-lm lacks.
  virtual std::string_view kind() const = 0;

  // Appends rows [1, H_kv, n, D]. Returns all rows that a new row may see, oldest first.
  virtual KeyValues update(const mx::array& keys, const mx::array& values) = 0;

  // Reserves the next `row_count` positions for a fused attention pass, whose rows start at
  // `first_row` of the batch. Throws kCapacity without memory; then nothing has changed.
  virtual kernels::AttendSpan append(int first_row, int row_count) = 0;

  // Puts row `row` of a read-only pass at the last committed row's position, so it sees the same
  // rows. Throws kInvalidArgument if there are no rows, kUnsupported for kinds that keep none.
  virtual kernels::AttendSpan last_row(int row) const;

  // Number of rows written so far, open transaction included: the next row's position.
  virtual std::int64_t offset() const = 0;

  // The next row's position for rotary embedding.
  std::int64_t rope_offset() const { return offset(); }

  // Maximum number of rows that stay visible; none if unbounded.
  virtual std::optional<int> max_size() const = 0;

  // Committed rows in time order (rings: the trailing window); none if empty.
  virtual std::optional<KeyValues> view() const = 0;

  // Bounds and positions as strings, for `SerializedCache`; empty for kinds without any. They
  // describe rows as `view()` or `quantized_view()` returns them. Throws kUnsupported for codes
  // that files have no format for.
  virtual std::vector<std::string> meta_state() const { return {}; }

  // Replaces the content with `rows`, as `view()` returned them at `offset` committed rows. Other
  // float dtypes are converted. Throws kInvalidArgument for rows that do not fit, kUnsupported for
  // kinds that cannot, kCapacity; then nothing has changed. REQUIRES: no open transaction.
  virtual void assign(std::int64_t offset, const std::optional<KeyValues>& rows);
  // As above with the rows of `quantized_view()`, for a cache that keeps such codes.
  virtual void assign(std::int64_t offset, const QuantizedKeyValues& rows);

  // As `view()`, for a cache that keeps codes (`view` returns the values they stand for); else
  // none.
  virtual std::optional<QuantizedKeyValues> quantized_view() const { return std::nullopt; }

  // True if the last `count` rows can be dropped and all rows visible before them are still there.
  virtual bool can_trim(std::int64_t count) const = 0;

  bool is_trimmable() const { return can_trim(1); }

  // Drops up to `count` rows; returns how many. REQUIRES: no open transaction.
  virtual std::int64_t trim(std::int64_t count) = 0;
  // Drops all rows and frees memory that nothing else holds. REQUIRES: no open transaction.
  virtual void clear() = 0;
  // The mask for n new rows under an additional window (0: none), chosen as in mlx-lm's
  // `make_mask`.
  virtual Mask make_mask(int n, int window) const = 0;
  virtual std::size_t nbytes() const = 0;
  // Most bytes that a pass with the next `row_count` rows takes.
  virtual std::size_t growth(std::int64_t row_count) const = 0;
  // Most bytes that a cache like this one holds, alone, with `row_count` rows that came in passes
  // of at most `step`.
  virtual std::size_t bytes_with(std::int64_t row_count, int step) const = 0;

  bool is_empty() const { return offset() == 0; }

  // A cache with the same rows. Memory is shared until one of the two writes.
  virtual std::unique_ptr<LayerCache> copy() const = 0;

  // The committed rows from `from` on (below 0 counts as 0). Null without such rows, and for kinds
  // that cannot be split. On CPU no memory is copied.
  virtual LayerSnapshotPtr snapshot(std::int64_t /*from*/) const { return nullptr; }

  // Builds rows [first, last) from the blocks of a snapshot; null for kinds that cannot.
  // Throws kCorruptData for blocks that do not fit, kCapacity without memory, and what reading
  // throws.
  virtual LayerSnapshotPtr snapshot_of(
      const BlockSource& /*blocks*/, std::int64_t /*first*/, std::int64_t /*last*/
  ) const {
    return nullptr;
  }

  // The largest position <= target that `restore` can reach with this snapshot; -1: none.
  virtual std::int64_t reach(const LayerSnapshot& /*rows*/, std::int64_t /*target*/) const {
    return -1;
  }

  // Goes to position `target`. Without a snapshot it goes back in the own rows; with one, the
  // snapshot's rows replace the rows from rows->first() on. Returns false, with nothing changed, if
  // a row that is visible from `target` is missing. REQUIRES: no open transaction.
  virtual bool restore(const LayerSnapshot* /*rows*/, std::int64_t /*target*/) { return false; }

  // True if `restore` can go to any position whose rows a snapshot has; false if only to positions
  // where snapshots were taken.
  virtual bool restores_anywhere() const { return true; }

  virtual void begin() = 0;

  // True if `commit` can keep the first `count` rows since `begin`. At least `count` were written.
  virtual bool can_commit(std::int64_t /*count*/) const { return true; }

  // Keeps the first `count` rows written since `begin` and drops the others. `count` is clamped to
  // [0, rows written].
  virtual void commit(std::int64_t count) = 0;
  virtual void roll_back() = 0;
};

}  // namespace saker::cache
