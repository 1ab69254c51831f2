// SPDX-License-Identifier: Apache-2.0
#include "saker/cache/row_snapshot.h"

#include <memory>

namespace saker::cache {

LayerSnapshotPtr RowSnapshot::slice(std::int64_t from, std::int64_t to) const {
  return std::make_shared<RowSnapshot>(rows_.slice(from, to), from, to);
}

LayerSnapshotPtr RowSnapshot::joined(const LayerSnapshot& next) const {
  const auto& other = dynamic_cast<const RowSnapshot&>(next);
  kernels::KvStore rows(rows_);
  // The page at the border also holds our last rows.
  const bool pages = rows.layout() == kernels::KvLayout::kPaged;
  const std::int64_t border = next.first() / kernels::kPageRows * kernels::kPageRows;
  rows.adopt(other.rows_, pages ? border : next.first());
  return std::make_shared<RowSnapshot>(std::move(rows), first(), next.last());
}

}  // namespace saker::cache
