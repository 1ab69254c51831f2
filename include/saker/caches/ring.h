// SPDX-License-Identifier: Apache-2.0
#pragma once

// Keeps the newest rows and the first `keep`, in mlx-lm's physical order. A single row overwrites
// the oldest in place. Several rows at once are appended in time order, behind up to max_size - 1
// earlier rows, so that each sees max_size.

#include "saker/caches/cache.h"
#include "saker/caches/row_buffer.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace saker::caches {

class Ring {
 public:
  // Throws kInvalidArgument unless 0 <= keep < max_size. Both 0: a ring without a size yet.
  Ring(int max_size, int keep);

  int max_size() const { return max_size_; }

  int keep() const { return keep_; }

  int offset() const { return offset_; }

  bool is_empty() const { return rows_.is_empty(); }

  const RowBuffer& buffer() const { return rows_; }

  // Throws kInvalidArgument if the ring has no size yet.
  void check_size() const;
  // As check_size; also throws if position and rows, which were set separately, do not fit.
  void check() const;
  void append(const Parts& rows);  // The oldest leave if the ring is full.
  // The valid rows in physical order, which attention reads.
  Parts visible() const;
  // The valid rows, oldest first.
  Parts in_time_order() const;

  void assign(Parts parts) { rows_ = RowBuffer(std::move(parts)); }  // Replaces all rows.

  // keep, max_size, offset, idx
  std::vector<std::string> meta_state() const;
  // Throws kCorruptData with nothing changed; accepts sizes as the constructor does.
  void set_meta_state(const std::vector<std::string>& meta);

  bool is_trimmable() const { return offset_ < max_size_; }

  int trim(int count);  // Drops up to `count` rows; returns how many.
  Mask make_mask(int n, std::optional<int> window, MaskForm form) const;  // For n new rows.

  void materialize() { rows_.materialize(); }  // Computes what is still lazy.

 private:
  void append_one(const Parts& row);
  void append_many(const Parts& rows);
  // `parts` without the `count` rows after the first `keep`.
  Parts without_oldest(const Parts& parts, int count) const;

  RowBuffer rows_;
  int max_size_;
  int keep_;
  int offset_ = 0;
  int idx_ = 0;
};

}  // namespace saker::caches
