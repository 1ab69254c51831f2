// SPDX-License-Identifier: Apache-2.0
#pragma once

// The rows of earlier prompts and answers, for sequences that start with the same tokens. A
// restored row is the very row that was computed, so on CPU an answer has the same bits with and
// without it.
//
// A key stands for everything besides the tokens that a row depends on: model, adapter, bound of
// the cache. Threading: one thread, the one that owns the caches.

#include "saker/cache/prefix_store.h"
#include "saker/cache/prefix_trie.h"
#include "saker/cache/sequence_cache.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

namespace saker::cache {

struct PrefixCacheOptions {
  std::size_t byte_budget = std::size_t{1} << 30;  // Of rows in memory.
  // Where rows go that have to leave the memory, and all of them in the end; empty: nowhere.
  std::filesystem::path folder;
  std::uintmax_t folder_budget = std::uintmax_t{8} << 30;  // Bytes of its files.
  // Rows, in whole pages, between two calls of `keep` for one sequence: layers that drop old rows
  // can go back to each of them, so that no more rows than these have to be run again.
  int interval = 256;
};

struct PrefixCacheStats {
  std::int64_t lookups = 0;          // Prompts that were looked up.
  std::int64_t hits = 0;             // Of these, found at least one row.
  std::int64_t prompt_tokens = 0;    // Of all prompts looked up.
  std::int64_t restored_tokens = 0;  // Of these, not run again.
  std::int64_t loaded_tokens = 0;    // Rows that came back from the folder.
  std::int64_t evictions = 0;
  std::size_t bytes = 0;  // Held now, shared memory counted once.
  std::size_t nodes = 0;
};

class PrefixCache {
 public:
  using Pin = PrefixTrie::Pin;

  // Throws kNotFound for a folder that cannot be used, kInvalidArgument for an interval below 1.
  explicit PrefixCache(const PrefixCacheOptions& options);
  PrefixCache(const PrefixCache&) = delete;
  PrefixCache& operator=(const PrefixCache&) = delete;
  ~PrefixCache();  // Writes to the folder what is not there yet.

  // Rows that `restore` would give at most, of those in memory.
  std::int64_t match(std::string_view key, TokenSpan prompt) const;
  // Fills `cache`, an empty one, with the longest prefix of `prompt` that is known and that its
  // layers can start from; returns its rows. At least the last token is left to run, since its row
  // gives the first logits. Rows stay pinned until the next call with `pin` or its end.
  std::int64_t restore(std::string_view key, TokenSpan prompt, SequenceCache& cache, Pin& pin);
  // Keeps the rows of `cache`, which are those of the first tokens of `context`. Without memory for
  // it nothing is kept.
  void keep(std::string_view key, TokenSpan context, const SequenceCache& cache, Pin& pin);

  // Whether a sequence whose first `kept` rows were kept should call `keep` now that it has
  // `count`: one interval further on; and when a page that was kept in part is whole, since without
  // all of its rows layers that drop old ones could not go back into it.
  bool is_due(std::int64_t kept, std::int64_t count) const;

  // The most rows that a sequence with `count` may run in one pass of its prompt, so that every
  // interval ends a pass where a cache can go back only to the ends of passes.
  int rows_to_interval(const SequenceCache& cache, std::int64_t count) const;

  // Of the first `count` rows of a prompt, those from which others can start once a sequence with
  // this cache has run them all.
  int rows_to_share(const SequenceCache& cache, int count) const;

  PrefixCacheStats stats() const;

 private:
  // Brings rows of these tokens back into memory; `like` is what they are for.
  void load(std::string_view key, TokenSpan tokens, const SequenceCache& like);
  void write(const TrieRows& rows);

  int interval_;
  std::optional<PrefixStore> store_;
  PrefixTrie trie_;
  PrefixCacheStats stats_;
};

}  // namespace saker::cache
