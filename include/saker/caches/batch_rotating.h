// SPDX-License-Identifier: Apache-2.0
#pragma once

// Left-padded rows of several sequences in a ring that keeps the newest max_size.
// caches/cache.h has shapes, units, errors and threading.

#include "saker/caches/batch.h"
#include "saker/caches/cache.h"
#include "saker/caches/rotating.h"
#include "saker/caches/row_buffer.h"

#include <optional>
#include <span>
#include <vector>

namespace saker::caches {

// A window of rows for several sequences of different lengths.
class BatchRotatingKVCache final : public Cache, public BatchPositioned {
 public:
  // Throws kInvalidArgument unless max_size is at least 1.
  BatchRotatingKVCache(int max_size, std::vector<int> left_padding);

  std::string_view kind() const override { return "BatchRotatingKVCache"; }

  // Below 0 if rows of the sequence were dropped.
  const std::vector<int>& left_padding() const { return left_padding_; }

  const std::vector<int>& batch_offset() const override { return offset_; }

  // After right padding, single rows are refused until `finalize`. Throws as BatchKVCache, and for
  // right padding without lengths.
  void prepare(const Padding& padding);
  // Right padding becomes left padding.
  void finalize();

  // Keeps these batch rows, in this order; the padding stays.
  void filter(std::span<const int> batch_rows);
  // Appends the other's batch rows. Throws kInvalidArgument for another bound, other heads or
  // dimensions, and before `finalize`.
  void extend(const BatchRotatingKVCache& other);
  // Returns one batch row without its padding.
  RotatingKVCache extract(int batch_row) const;
  // REQUIRES: at least one cache. Throws kInvalidArgument for different bounds.
  static BatchRotatingKVCache merge(std::span<const RotatingKVCache* const> caches);

  KeyValues update(const mx::array& keys, const mx::array& values) override;

  // Number of rows appended, padding included.
  std::int64_t offset() const override { return total_; }

  std::optional<int> max_size() const override { return max_size_; }

  std::vector<mx::array> state() const override;
  void set_state(std::vector<mx::array> arrays) override;
  std::vector<std::string> meta_state() const override;
  void set_meta_state(const std::vector<std::string>& meta) override;

  void materialize() override { rows_.materialize(); }

  bool is_trimmable() const override { return total_ < max_size_; }

  int trim(int count) override;
  // Always an array, [B, 1, n, S], for the rows that `update` will return.
  Mask make_mask(int n, std::optional<int> window = std::nullopt, MaskForm form = MaskForm::kAny)
      const override;

  std::size_t nbytes() const override { return rows_.nbytes(); }

  bool is_empty() const override { return rows_.is_empty(); }

  std::unique_ptr<Cache> copy() const override;

 private:
  void become(Cache& other) override;

  void append_one(const Parts& row);
  void append_many(const Parts& rows);
  void order_by_time();
  void shift_all(std::vector<int>& values, int by);
  // Moves right padding, which lies before the newest rows, to the left end.
  void roll_padding();
  Parts visible() const;

  RowBuffer rows_;
  std::vector<int> left_padding_;
  std::vector<int> offset_;
  std::vector<int> ends_;  // Right-padded rows until `finalize`: the offset of each row's end.
  int max_size_;
  int total_ = 0;
  int idx_ = 0;
  bool rotated_ = false;
};

}  // namespace saker::caches
