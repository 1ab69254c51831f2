// SPDX-License-Identifier: Apache-2.0
#pragma once

// Key and value rows in one contiguous array each, [1, H_kv, capacity, D], for MLX's own attention.
//
// Writes are lazy slice updates on the caller's thread. MLX updates in place unless a copy still
// holds the old array. Row 0 of the arrays is position `base`. When the arrays must grow, dropped
// rows at the front are removed first (only with keep = 0).

#include "saker/kernels/cpu/runtime/memory_account.h"
#include "saker/kernels/storage/kv_store.h"

#include <cstddef>
#include <cstdint>
#include <optional>

namespace saker::kernels {

class KvBuffer {
 public:
  explicit KvBuffer(const KvShape& shape) : shape_(shape) {}

  // See KvStore.
  void prepare(std::int64_t first, int count);
  void drop_before(std::int64_t position, int keep);
  void drop_from(std::int64_t position);
  KvBuffer slice(std::int64_t first, std::int64_t last) const;
  void adopt(const KvBuffer& other, std::int64_t first);
  bool holds(std::int64_t first, std::int64_t last) const;
  void for_each_block(const BlockVisitor& visit) const;
  std::size_t growth(std::int64_t first, std::int64_t count) const;
  std::size_t bytes_with(std::int64_t row_count) const;
  std::size_t nbytes() const;

  std::int64_t begin() const { return base_; }

  std::int64_t end() const { return end_; }

  // keys [1, H_kv, n, D] and values [1, H_kv, n, D_v] for positions first... REQUIRES: prepared.
  void write(std::int64_t first, const mx::array& keys, const mx::array& values);
  // Rows [first, last), lazy: [1, H_kv, last - first, D]. REQUIRES: begin() <= first < last <=
  // end().
  mx::array keys(std::int64_t first, std::int64_t last) const;
  mx::array values(std::int64_t first, std::int64_t last) const;

 private:
  mx::array rows(const mx::array& buffer, std::int64_t first, std::int64_t last) const;
  mx::array grown(
      const std::optional<mx::array>& buffer, std::int64_t base, int capacity, int width
  ) const;

  KvShape shape_;
  std::optional<mx::array> keys_;
  std::optional<mx::array> values_;  // None if they are in the keys.
  std::int64_t base_ = 0;
  std::int64_t dead_ = 0;  // Rows below are not needed any more.
  std::int64_t end_ = 0;
  HeldBytes held_;
};

}  // namespace saker::kernels
