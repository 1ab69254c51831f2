// SPDX-License-Identifier: Apache-2.0
#pragma once

// Converts snapshots to bytes and back, for files. First a table of 64-bit little-endian numbers:
// the number of layers, then per layer its number of pages, and index and size of each page. Then
// the pages as in memory. Only pages: a GPU has none.

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
  // Table and pages, in order; valid as long as the table and the snapshot.
  std::vector<std::span<const std::byte>> parts;
};

SnapshotBytes to_bytes(const SequenceSnapshot& rows);

// Reads rows [first, last), for caches like `cache`, from the rest of the file straight into pages.
// Throws kCorruptData for bytes that are not such rows, kCapacity without memory.
SequenceSnapshot from_bytes(
    CheckedReader& bytes, std::int64_t first, std::int64_t last, const SequenceCache& cache
);

}  // namespace saker::cache
