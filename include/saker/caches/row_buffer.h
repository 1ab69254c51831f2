// SPDX-License-Identifier: Apache-2.0
#pragma once

// One cache's rows in arrays [B, H, capacity, *]: keys and values, or the parts of quantized ones.
// Appending writes in place unless somebody else holds the arrays. Capacity grows by half, in steps
// of kStep rows.

#include "saker/kernels/mx.h"

#include <cstddef>
#include <vector>

namespace saker::caches {

using Parts = std::vector<mx::array>;

inline constexpr int kStep = 256;
inline constexpr int kRowAxis = 2;

// Rows [first, last) of each part.
Parts rows_of(const Parts& parts, int first, int last);
// Joins rows: first, then second.
Parts joined(const Parts& first, const Parts& second);
std::size_t nbytes_of(const Parts& parts);  // Bytes of all parts.

class RowBuffer {
 public:
  RowBuffer() = default;

  // A buffer full of these rows; empty without parts.
  explicit RowBuffer(Parts parts) : parts_(std::move(parts)) {}

  bool is_empty() const { return parts_.empty(); }

  int capacity() const { return is_empty() ? 0 : parts_.front().shape(kRowAxis); }

  int batch() const { return is_empty() ? 0 : parts_.front().shape(0); }

  const Parts& parts() const { return parts_; }

  std::size_t nbytes() const { return nbytes_of(parts_); }

  // Writes rows at `at` and makes room for them. Rows behind `at` are kept only within the old
  // capacity. A single batch row is repeated for all.
  void write(int at, const Parts& rows);
  // Makes room for `capacity` rows and keeps the first `used`. An empty buffer takes shapes and
  // dtypes from the parts of `like`.
  void reserve(int capacity, int used, const Parts& like);
  void materialize();  // Computes what is still lazy.

 private:
  Parts parts_;
};

}  // namespace saker::caches
