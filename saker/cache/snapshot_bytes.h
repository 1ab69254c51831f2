// SPDX-License-Identifier: Apache-2.0
#pragma once

// Snapshots as bytes and back, for files: a table of 64-bit little-endian numbers (layers; for each
// layer its number of pages, then index and size of each), then the pages as they lie in memory.
// Pages only: on a GPU there are none.

#include "saker/base/checked_reader.h"
#include "saker/cache/sequence_cache.h"
#include "saker/cache/snapshot.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace saker::cache {

struct SnapshotBytes {
  std::vector<std::uint64_t> table;
  // Table and pages in order; they live as long as the table and the snapshot.
  std::vector<std::span<const std::byte>> parts;
};

SnapshotBytes to_bytes(const SequenceSnapshot& rows);

// Rows [first, last) for caches such as `cache`, from all that is left of the file, which goes
// right to the pages. Throws kCorruptData for bytes that are not such rows, kCapacity without
// memory.
SequenceSnapshot from_bytes(
    CheckedReader& bytes, std::int64_t first, std::int64_t last, const SequenceCache& cache
);

}  // namespace saker::cache
