// SPDX-License-Identifier: Apache-2.0
#pragma once

// Rows of earlier prompts and answers, for sequences that start with the same tokens. A restored
// row is the very row that was computed. So on CPU an answer has the same bits with and without
// this cache.
//
// A key identifies everything a row depends on besides tokens: model, adapter, bound of the cache.
// Threading: one thread, the owner of the caches.

#include "saker/cache/prefix_store.h"
#include "saker/cache/prefix_trie.h"
#include "saker/cache/sequence_cache.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>

namespace saker::cache {

struct PrefixCacheOptions {
  std::size_t byte_budget = std::size_t{1} << 30;  // For rows in memory.
  // Folder for rows that have to leave memory, and for all rows in the end; empty: none.
  std::filesystem::path folder;
  std::uintmax_t folder_budget = std::uintmax_t{8} << 30;  // Bytes of the folder's files.
  // Rows, in whole pages, between two calls of `keep` for one sequence. Layers that drop old rows
  // can go back to each of these points, so no more than `interval` rows have to run again.
  int interval = 256;
  // The rows of the first `held` of these tokens are in memory, those of the others are not. No
  // tokens: there are no rows. Called where something changed, and at begin and end; may be empty.
  std::function<void(std::string_view key, TokenSpan tokens, std::int64_t held)> on_rows = {};
};

struct PrefixCacheStats {
  std::int64_t lookups = 0;          // Prompts that were looked up.
  std::int64_t hits = 0;             // Lookups that found at least one row.
  std::int64_t prompt_tokens = 0;    // In all prompts looked up.
  std::int64_t restored_tokens = 0;  // Prompt tokens that did not run again.
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

  // Most rows that `restore` can return from memory.
  std::int64_t match(std::string_view key, TokenSpan prompt) const;
  // Fills the empty `cache` with the longest known prefix of `prompt` that all layers can start
  // from; returns its rows. At least the last token is left to run, since its row gives the first
  // logits. Rows stay pinned until the next call with `pin`, or until it is destroyed.
  std::int64_t restore(std::string_view key, TokenSpan prompt, SequenceCache& cache, Pin& pin);
  // Keeps the rows of `cache`, which belong to the first tokens of `context`. Keeps nothing if
  // there is no memory for it.
  void keep(std::string_view key, TokenSpan context, const SequenceCache& cache, Pin& pin);

  // Gives up some rows, as if the budget were exceeded; false if there are none.
  bool give_way() { return trie_.evict_one() || (store_ && store_->finish_one()); }

  // Before rows come from the folder, `has_room(bytes)` tells if memory may take them.
  void ask_before_loading(std::function<bool(std::size_t bytes)> has_room) {
    has_room_ = std::move(has_room);
  }

  // True if a sequence with `kept` rows kept should call `keep` again at `count` rows. That is
  // after one interval, or when a partly kept page is whole. Layers that drop old rows need all
  // rows of a page to go back into it.
  bool is_due(std::int64_t kept, std::int64_t count) const;

  // Most tokens of a prompt that a sequence with `count` rows may run in one pass. A cache that can
  // go back only to ends of passes thus has one at every interval.
  int rows_to_interval(const SequenceCache& cache, std::int64_t count) const;

  // Number of a prompt's first `count` rows that others can start from, once a sequence with this
  // cache has run them all.
  int rows_to_share(const SequenceCache& cache, int count) const;

  PrefixCacheStats stats() const;

 private:
  // Loads rows of these tokens back into memory; `like` shows the layers they are for.
  void load(std::string_view key, TokenSpan tokens, const SequenceCache& like);
  void write(const TrieRows& rows);
  void insert(std::string_view key, TokenSpan tokens, const SequenceSnapshot& rows);

  int interval_;
  std::function<void(std::string_view key, TokenSpan tokens, std::int64_t held)> on_rows_;
  std::optional<PrefixStore> store_;
  PrefixTrie trie_;
  std::function<bool(std::size_t bytes)> has_room_;  // Empty: it may.
  PrefixCacheStats stats_;
};

}  // namespace saker::cache
