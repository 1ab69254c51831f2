// SPDX-License-Identifier: Apache-2.0
#pragma once

// A cache's content as plain values, between caches and files. Names are mlx-lm's. By kind, with L
// valid rows in the cache's own order:
//
//   kind                       state                               meta
//   KVCache                    none, or keys, values               -
//                              [B, H_kv, L, D]
//   RotatingKVCache            none, or keys, values               keep, max_size, offset, idx
//   ChunkedKVCache             none, or keys, values               chunk_size or "None",
//                                                                  start_position
//   QuantizedKVCache           none, or weight, scales and, where  offset, group_size, bits
//                              there are some, biases of the
//                              keys, then of the values
//   QuantizedRotatingKVCache   as QuantizedKVCache                 keep, max_size, offset, idx,
//                                                                  group_size, bits
//   BatchKVCache               none, or keys, values,              -
//                              offset [B], left_padding [B]
//   BatchRotatingKVCache       as BatchKVCache                     max_size, offset, idx, rotated
//   ArraysCache, MambaCache    the slots that are set              slot count; their indices
//                                                                  "0,2"; left_padding and
//                                                                  lengths, each "" or one
//                                                                  integer per row "1,0"
//   CacheList                  those of all children, in order     child count; then for each: its
//                                                                  kind, number of states, number
//                                                                  of metas, and its metas
//
// Buffers are cut to L. A ring may hold more rows than max_size. Its rows are in time order if idx
// is L; else the oldest row after the first `keep` is at idx. Integers are decimal, truth values
// are "true" or "false". QuantizedRotatingKVCache is Saker's own kind, the others are mlx-lm's.

#include "saker/base/tensor.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace saker::cache {

// Pages of a quantized cache in Saker's layout. Codes in mlx-lm's layout round these rows once
// more; with pages a restored cache keeps its bits.
struct SerializedPages {
  struct Page {
    std::int64_t index = 0;
    std::int64_t bytes = 0;
  };

  std::vector<Page> pages;  // Ascending.
  Tensor bytes;             // U8, page after page.
};

struct SerializedCache {
  std::string kind;
  std::vector<Tensor> state;
  std::vector<std::string> meta;
  std::optional<SerializedPages> pages = std::nullopt;
};

// Limits against hostile input.
inline constexpr std::size_t kMaxCacheSlots = std::size_t{1} << 20;
inline constexpr int kMaxCacheNesting = 64;

// The canonical name of a kind. Accepts other runtimes' names ("KVCacheSimple", "StandardKvCache",
// "RotatingKvCache", ...). Throws kUnsupported naming the kind.
std::string_view canonical_kind(std::string_view name);

// Parses an integer of at most 32 bits from meta; throws kCorruptData naming `what`.
std::int64_t meta_integer(std::string_view text, std::string_view what);
// Parses "true" or "false", in any case.
bool meta_bool(std::string_view text, std::string_view what);
// Parses "1,0,3": at most `limit` integers.
std::vector<std::int64_t> meta_integers(
    std::string_view text, std::size_t limit, std::string_view what
);

// Throws kCorruptData unless a cache of this kind can hold these values: counts, ranks, dtypes,
// agreeing shapes, positions within the rows.
void check_serialized(const SerializedCache& cache);

// The children of a CacheList; checks only its framing. Throws kCorruptData.
std::vector<SerializedCache> split_cache_list(SerializedCache list);
SerializedCache join_cache_list(const std::vector<SerializedCache>& children);  // The reverse.

// The caches of each layer in a list, as mlx-lm has them; `per_layer` 1: as they are. Caches with
// pages stay apart. REQUIRES: a multiple of `per_layer`.
std::vector<SerializedCache> in_lists(std::vector<SerializedCache> caches, int per_layer);
// The children of lists in their place.
std::vector<SerializedCache> without_lists(std::vector<SerializedCache> layers);

// Meta values of an ArraysCache.
struct SlotLayout {
  std::size_t slots = 0;
  std::vector<std::int64_t> present;
  std::optional<std::vector<std::int64_t>> left_padding;
  std::optional<std::vector<std::int64_t>> lengths;
};

// Throws kCorruptData. An empty meta is the older form: `state_count` slots, all set.
SlotLayout slot_layout(const std::vector<std::string>& meta, std::size_t state_count);

}  // namespace saker::cache
