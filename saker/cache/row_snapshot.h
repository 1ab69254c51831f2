// SPDX-License-Identifier: Apache-2.0
#pragma once

// Rows of a PagedCache: the pages that hold them. The first row's page also holds that sequence's
// rows before it.

#include "saker/cache/snapshot.h"

#include <cstdint>
#include <utility>

namespace saker::cache {

class RowSnapshot final : public LayerSnapshot {
 public:
  RowSnapshot(kernels::KvStore rows, std::int64_t first, std::int64_t last)
      : LayerSnapshot(first, last), rows_(std::move(rows)) {}

  const kernels::KvStore& rows() const { return rows_; }

  LayerSnapshotPtr slice(std::int64_t from, std::int64_t to) const override;
  LayerSnapshotPtr joined(const LayerSnapshot& next) const override;

  void for_each_block(const kernels::BlockVisitor& visit) const override {
    rows_.for_each_block(visit);
  }

 private:
  kernels::KvStore rows_;
};

}  // namespace saker::cache
