// SPDX-License-Identifier: Apache-2.0
#pragma once

// Base of caches whose rows live in a KvStore: positions, transactions, copies. A row keeps its
// absolute position forever. So a rollback only drops the newest rows, and a bounded cache only
// drops old ones. Old rows are dropped at the first change after their commit, since a fused pass
// that committed itself may not be evaluated earlier. Until then a snapshot can have them.

#include "saker/cache/layer_cache.h"
#include "saker/kernels/storage/kv_store.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace saker::cache {

// Earlier rows that stay visible: positions < keep, and the newest `recent` ones. No bound: all.
struct RowBound {
  int recent = 0;
  int keep = 0;
};

class PagedCache : public LayerCache {
 public:
  KeyValues update(const mx::array& keys, const mx::array& values) final;
  kernels::AttendSpan append(int first_row, int row_count) final;

  kernels::AttendSpan last_row(int row) const final;

  std::int64_t offset() const final { return offset_; }

  std::optional<KeyValues> view() const final;
  void assign(std::int64_t offset, const std::optional<KeyValues>& rows) final;
  void assign(std::int64_t offset, const QuantizedKeyValues& rows) final;
  std::optional<QuantizedKeyValues> quantized_view() const final;
  std::int64_t trim(std::int64_t count) final;
  void clear() final;
  std::size_t nbytes() const final;
  std::size_t growth(std::int64_t row_count) const final;
  std::size_t bytes_with(std::int64_t row_count, int step) const final;

  LayerSnapshotPtr snapshot(std::int64_t from) const final;
  LayerSnapshotPtr snapshot_of(const BlockSource& blocks, std::int64_t first, std::int64_t last)
      const final;
  std::int64_t reach(const LayerSnapshot& rows, std::int64_t target) const final;
  bool restore(const LayerSnapshot* rows, std::int64_t target) final;

  void begin() final;
  void commit(std::int64_t count) final;
  void roll_back() final;

 protected:
  bool is_quantized() const;
  // Group size and bits for `meta_state`; none for rows that are not quantized. Throws kUnsupported
  // for dimensions that files have no format for.
  std::vector<std::string> quantization_meta() const;

  PagedCache(const kernels::KvShape& shape, std::optional<RowBound> bound);
  // Copies the committed rows of `other`; memory is shared.
  PagedCache(const PagedCache& other);

  std::int64_t committed() const { return begun_.value_or(offset_); }

 private:
  kernels::AttendSpan span_of(int first_row, int row_count, std::int64_t first_position) const;
  void check_rows(const mx::array& rows, int head_dim, std::string_view what) const;
  // Checks that keys and values belong together. Returns the number of rows.
  int check_pair(const mx::array& keys, const mx::array& values) const;
  // Writes rows [first, last) of an assignment to `position` and on.
  using WriteRows =
      std::function<void(kernels::KvStore& store, std::int64_t position, int first, int last)>;

  // Replaces our rows with `count` rows, a view at `offset`.
  void replace(std::int64_t offset, int count, const WriteRows& write);
  // Called before this many rows are written.
  void make_room(int row_count);
  void drop_old_rows();
  // True if `store` has all rows that are visible from `position`.
  bool has_visible(const kernels::KvStore& store, std::int64_t position) const;
  // Our store with the rows from rows.first() on replaced; none if they do not fit it.
  std::optional<kernels::KvStore> with(const LayerSnapshot& rows) const;
  // Rows that a reader at `offset` sees, with a window of the `recent` newest ones; oldest first.
  KeyValues rows(std::int64_t offset, std::int64_t recent) const;

  std::shared_ptr<kernels::KvStore> store_;
  std::optional<RowBound> bound_;
  std::int64_t offset_ = 0;
  std::optional<std::int64_t> begun_;  // Offset when the open transaction began.
};

}  // namespace saker::cache
