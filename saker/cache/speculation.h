// SPDX-License-Identifier: Apache-2.0
#pragma once

// Rows tried on a view of a cache: passes run on `view()`, which shares the cache's memory and
// writes to pages of its own, and the cache sees nothing of it until `commit(n)` gives it the first
// n rows. Without a commit nothing has happened. All layers commit or none.

#include "saker/cache/sequence_cache.h"

#include <cstdint>

namespace saker::cache {

class Speculation {
 public:
  // REQUIRES: `live` outlives this, has no open transaction and does not change until `commit`.
  explicit Speculation(SequenceCache& live);

  SequenceCache& view() { return view_; }

  // Rows written to the view so far.
  std::int64_t rows() const { return view_.offset() - start_; }

  // Ends the speculation with the first `count` rows: all of them where `count` is more, none where
  // it is below 0. Throws kInternal, with nothing changed, where the live cache has moved, and
  // after an earlier commit.
  void commit(std::int64_t count);

 private:
  SequenceCache& live_;
  std::int64_t start_;
  SequenceCache view_;
};

}  // namespace saker::cache
