// SPDX-License-Identifier: Apache-2.0
#pragma once

// Rows that sequences take from the prefix cache and give to it. Sequences with an equal, nonempty
// `prefix_key` share rows. Threading: the thread that owns MLX.

#include "saker/cache/prefix_cache.h"
#include "saker/cache/sequence_cache.h"
#include "saker/generate/running_sequence.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

namespace saker::generate {

class SharedRows {
 public:
  // Null: no rows are shared.
  explicit SharedRows(cache::PrefixCache* prefixes) : prefixes_(prefixes) {}

  // True if rows that this prompt can take are being run for an earlier one of `active`.
  bool awaits_rows(std::span<const std::unique_ptr<RunningSequence>> active, std::size_t index)
      const;

  // Rows of the sequence's tokens that are known.
  std::int64_t known_rows(const RunningSequence& sequence) const;

  // Begins a prompt with the rows that are known; also again, after they were given up.
  void begin(RunningSequence& sequence, const std::function<cache::SequenceCache()>& new_cache)
      const;

  // Most rows of the next step: rows are kept at each multiple of the cache's interval.
  int most_rows(const RunningSequence& sequence) const;

  // True if an answer has enough new rows to keep them.
  bool is_due(const RunningSequence& sequence) const;

  // Gives the sequence's rows to the prefix cache.
  void keep(RunningSequence& sequence) const;

 private:
  bool shares(const RunningSequence& sequence) const;

  cache::PrefixCache* prefixes_;
};

}  // namespace saker::generate
