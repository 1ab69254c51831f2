// SPDX-License-Identifier: Apache-2.0
#pragma once

// Runs passes on a copy of a cache: `view()` shares the cache's memory and writes to its own pages.
// The cache sees nothing until `commit(n)` gives it the first n rows; without a commit it stays
// unchanged. All layers commit or none.

#include "saker/cache/sequence_cache.h"

#include <cstdint>

namespace saker::cache {

class Speculation {
 public:
  // REQUIRES: `live` outlives this, has no open transaction and does not change until `commit`.
  explicit Speculation(SequenceCache& live);

  SequenceCache& view() { return view_; }

  // Number of rows written to the view so far.
  std::int64_t rows() const { return view_.offset() - start_; }

  // Ends the speculation and keeps the first `count` rows; `count` is clamped to [0, rows()].
  // Throws kInternal, with nothing changed, if the live cache has moved, and after an earlier
  // commit.
  void commit(std::int64_t count);

 private:
  SequenceCache& live_;
  std::int64_t start_;
  SequenceCache view_;
};

}  // namespace saker::cache
