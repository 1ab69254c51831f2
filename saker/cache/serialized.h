// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a cache keeps, as plain values: the form between caches and files. Names are those of
// mlx-lm. By kind, with L valid rows in the order in which the cache holds them:
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
// Buffers are cut to L. A ring may hold more rows than max_size; its rows are in time order when
// idx is L, else the oldest row after the first `keep` is at idx. Integers are decimal, truth is
// "true" or "false". QuantizedRotatingKVCache is Saker's alone, the others are mlx-lm's.

#include "saker/base/tensor.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace saker::cache {

// Pages of a quantized cache as Saker keeps them. Codes in mlx-lm's layout round these rows once
// more; with the pages a cache goes on with the same bits.
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

// The canonical name of a kind; other runtimes' names are accepted ("KVCacheSimple",
// "StandardKvCache", "RotatingKvCache", ...). Throws kUnsupported naming the kind.
std::string_view canonical_kind(std::string_view name);

// An integer of at most 32 bits as meta strings hold it; throws kCorruptData naming `what`.
std::int64_t meta_integer(std::string_view text, std::string_view what);
// "true" and "false" in any case.
bool meta_bool(std::string_view text, std::string_view what);
// "1,0,3", at most `limit` of them.
std::vector<std::int64_t> meta_integers(
    std::string_view text, std::size_t limit, std::string_view what
);

// Throws kCorruptData unless the values are what a cache of this kind can hold: counts, ranks,
// dtypes, agreeing shapes, positions within the rows.
void check_serialized(const SerializedCache& cache);

// The children of a CacheList, checked as frames only. Throws kCorruptData.
std::vector<SerializedCache> split_cache_list(SerializedCache list);
SerializedCache join_cache_list(const std::vector<SerializedCache>& children);

// What an ArraysCache's meta says.
struct SlotLayout {
  std::size_t slots = 0;
  std::vector<std::int64_t> present;
  std::optional<std::vector<std::int64_t>> left_padding;
  std::optional<std::vector<std::int64_t>> lengths;
};

// Throws kCorruptData; an empty meta is the older form of `state_count` slots, all set.
SlotLayout slot_layout(const std::vector<std::string>& meta, std::size_t state_count);

}  // namespace saker::cache
