// SPDX-License-Identifier: Apache-2.0
#include "saker/cache/prefix_cache.h"

#include "saker/base/error.h"
#include "saker/cache/snapshot_bytes.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <exception>
#include <limits>
#include <new>
#include <optional>
#include <vector>

namespace saker::cache {
namespace {

// The tokens of a prompt that need not run.
TokenSpan reusable(TokenSpan prompt) {
  return prompt.empty() ? prompt : prompt.first(prompt.size() - 1);
}

}  // namespace

PrefixCache::PrefixCache(const PrefixCacheOptions& options)
    : interval_(options.interval),
      on_rows_(options.on_rows),
      trie_(options.byte_budget, [this](const TrieRows& rows) {
        write(rows);
        if (on_rows_) {
          on_rows_(rows.key, rows.path, rows.rows.first());
        }
      }) {
  require(
      interval_ >= 1,
      ErrorCode::kInvalidArgument,
      "prefix_cache_interval: got {}, expected 1 or more",
      interval_
  );
  if (!options.folder.empty()) {
    store_.emplace(options.folder, options.folder_budget);
  }
  if (on_rows_) {
    on_rows_("", {}, 0);
  }
}

PrefixCache::~PrefixCache() {
  try {
    if (on_rows_) {
      on_rows_("", {}, 0);
    }
    trie_.for_each([this](const TrieRows& rows) { write(rows); });
  } catch (const std::exception& error) {
    spdlog::warn("prefix cache: not all rows were written: {}", error.what());
  }
}

void PrefixCache::write(const TrieRows& rows) {
  if (store_ && !store_->has(rows.key, rows.path, rows.rows.first())) {
    // Keeps the pages alive and unchanged until the writer is done.
    struct Held {
      SequenceSnapshot rows;
      SnapshotBytes bytes;
    };

    const auto held = std::make_shared<const Held>(Held{rows.rows, to_bytes(rows.rows)});
    store_->write(rows.key, rows.path, rows.rows.first(), {held->bytes.parts, held});
  }
}

void PrefixCache::insert(std::string_view key, TokenSpan tokens, const SequenceSnapshot& rows) {
  trie_.insert(key, tokens, rows);
  if (on_rows_) {  // Some may have been evicted at once.
    on_rows_(key, tokens, trie_.match(key, tokens));
  }
}

void PrefixCache::load(std::string_view key, TokenSpan tokens, const SequenceCache& like) {
  while (store_) {
    const std::int64_t known = trie_.match(key, tokens);
    const PrefixStore::Entry* entry = store_->find(key, tokens, known);
    if (entry == nullptr || (has_room_ && !has_room_(entry->bytes))) {
      return;
    }
    const std::vector<std::int32_t> path = entry->path;
    std::optional<SequenceSnapshot> rows;
    try {
      const auto last = static_cast<std::int64_t>(path.size());
      const bool whole = store_->read(*entry, [&](CheckedReader& payload) {
        rows.emplace(from_bytes(payload, entry->first, last, like));
      });
      if (!whole) {
        continue;  // The file was damaged, its entry is gone.
      }
      insert(key, path, *rows);  // May change the store.
    } catch (const Error&) {
      return;  // No memory for the rows.
    }
    const std::int64_t gained = trie_.match(key, tokens) - known;
    stats_.loaded_tokens += std::max<std::int64_t>(gained, 0);
    spdlog::debug("prefix cache: {} rows came from its folder", gained);
    if (gained <= 0) {
      return;  // The budget is smaller than these rows.
    }
  }
}

std::int64_t PrefixCache::match(std::string_view key, TokenSpan prompt) const {
  return trie_.match(key, reusable(prompt));
}

std::int64_t PrefixCache::restore(
    std::string_view key, TokenSpan prompt, SequenceCache& cache, Pin& pin
) {
  const TokenSpan tokens = reusable(prompt);
  ++stats_.lookups;
  stats_.prompt_tokens += static_cast<std::int64_t>(prompt.size());
  load(key, tokens, cache);
  const std::optional<SequenceSnapshot> rows = trie_.find(key, tokens);
  if (!rows) {
    return 0;
  }
  const std::int64_t reached = cache.reach(*rows, rows->last());
  if (reached <= 0 || !cache.restore(*rows, reached)) {
    return 0;
  }
  pin = trie_.pin(key, tokens.first(static_cast<std::size_t>(reached)));
  ++stats_.hits;
  stats_.restored_tokens += reached;
  spdlog::debug("prefix cache: {} of {} prompt tokens are known", reached, prompt.size());
  return reached;
}

bool PrefixCache::is_due(std::int64_t kept, std::int64_t count) const {
  const bool new_page = count / kernels::kPageRows > kept / kernels::kPageRows;
  return new_page && (kept % kernels::kPageRows != 0 || count - kept >= interval_);
}

int PrefixCache::rows_to_interval(const SequenceCache& cache, std::int64_t count) const {
  return cache.restores_anywhere() ? std::numeric_limits<int>::max()
                                   : interval_ - static_cast<int>(count % interval_);
}

int PrefixCache::rows_to_share(const SequenceCache& cache, int count) const {
  return cache.restores_anywhere() ? count : count - count % interval_;
}

void PrefixCache::keep(
    std::string_view key, TokenSpan context, const SequenceCache& cache, Pin& pin
) {
  const auto count = std::min(static_cast<std::int64_t>(context.size()), cache.offset());
  const TokenSpan tokens = context.first(static_cast<std::size_t>(count));
  try {
    const std::optional<SequenceSnapshot> rows = cache.snapshot(trie_.match(key, tokens));
    if (rows && rows->last() == count) {
      insert(key, tokens, *rows);
      spdlog::trace(
          "prefix cache: keeps rows {} to {}, {} bytes in all", rows->first(), count, trie_.bytes()
      );
    }
    pin = trie_.pin(key, tokens);
  } catch (const std::bad_alloc&) {
    pin = {};
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kCapacity) {
      throw;
    }
    pin = {};
  }
}

PrefixCacheStats PrefixCache::stats() const {
  PrefixCacheStats stats = stats_;
  stats.evictions = trie_.evictions();
  stats.bytes = trie_.bytes();
  stats.nodes = trie_.node_count();
  return stats;
}

}  // namespace saker::cache
