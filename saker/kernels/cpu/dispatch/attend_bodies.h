// SPDX-License-Identifier: Apache-2.0
#pragma once

// Plain data that the attention bodies read: made before the pass runs, the same for every
// instruction set.
//
// The order of additions of one row does not depend on the rows beside it:
//   score   q . k, fused multiply-adds over d in order; q was scaled before
//   block   64 keys aligned to position 0: maximum, exponentials, sums per lane (key modulo 16);
//           then values, each element a chain over the keys that the row sees, in order
//   chunk   16 blocks aligned to position 0: online softmax over its blocks in order, from an empty
//           state
//   row     the chunks' states merged in order, then its head's sink
//
// Quantized pages have one product per group of elements (see quantized.h), then the product with
// the page's offsets (see key_offsets.h). On x86 both are in integers, see code_products.h. Page 0
// of a quantized cache is not quantized.
//
// Sets that multiply pairs of bf16 take elements and keys by two, or by 32 on AMX, as matrix
// products do (see linear_bodies.h). They multiply the unseen keys of a block with a weight of
// zero. Blocks and chunks that a row does not see are skipped by position, so they cannot change a
// bit. Chunks may run on different threads, which keeps long contexts with few heads fast.

#include "saker/kernels/cpu/dispatch/head_rows.h"
#include "saker/kernels/layout/code_block.h"
#include "saker/kernels/layout/lanes.h"

#include <cstddef>
#include <cstdint>

namespace saker::kernels {

inline constexpr int kAttendBlock = 64;        // = kPageRows.
inline constexpr int kAttendChunkBlocks = 16;  // Blocks per chunk.
// Maximum flattened query rows of a tile, which share the keys and values that are loaded.
inline constexpr int kAttendTileRows = 256;
// Rows of a tile that finish a block's steps before the next block starts.
inline constexpr int kAttendBatchRows = 64;
// Maximum rows of a tile that a set multiplies together.
inline constexpr int kAttendGroupRows = 16;

// Keys that a row sees: [keep_begin, keep_end) and [begin, end), including its own.
struct SeenKeys {
  std::int64_t keep_begin;
  std::int64_t keep_end;
  std::int64_t begin;
  std::int64_t end;
};

// A page that some row of the span sees.
struct AttendPage {
  std::int64_t index;  // Position divided by kAttendBlock.
  const std::byte* data;
};

struct AttendShape {
  int heads;
  int group;  // Heads that share one KV head.
  int head_dim;
  int query_stride;  // Floats of a query in scratch memory before rounding: whole steps of 32.
  int value_head_dim;
  int value_chunks;     // Chunks of 16 elements.
  bool bf16;            // Pages hold bf16 or codes of it; else float32.
  bool values_in_keys;  // A block's values are made from its keys, see turned_values.h.
  CodeBlock key_codes;  // For quantized pages.
  CodeBlock value_codes;
  std::size_t head_bytes;  // From one KV head to the next inside a page.
  std::size_t key_bytes;   // From a head's keys to its values.
  // As above, for page 0 of a quantized cache, which is not quantized.
  std::size_t first_head_bytes;
  std::size_t first_key_bytes;
  float scale;
  float softcap;
  const float* sinks = nullptr;  // [heads], see AttendOptions; null: none.
};

// The shape of page 0. In a quantized cache that page is not quantized; otherwise it equals
// `shape`.
[[gnu::always_inline]] inline AttendShape first_page_shape(AttendShape shape) {
  shape.key_codes = {};
  shape.value_codes = {};
  shape.head_bytes = shape.first_head_bytes;
  shape.key_bytes = shape.first_key_bytes;
  return shape;
}

// Some query rows of one span and of KV heads [kv_head, kv_head + kv_heads). Flat row j of a KV
// head is its head j % group at the span's row j / group. The heads of a page are adjacent. So few
// rows of several heads read memory in order, and many rows of one head keep its keys and values in
// cache.
struct AttendTile {
  HeadRows q;            // The span's: row 0 is its first.
  float* out;            // The span's: [row_count, heads, value_head_dim].
  const SeenKeys* seen;  // The span's, by row.
  int kv_head;
  int kv_heads;
  int first;  // Flat rows [first, first + count) of each KV head.
  int count;
};

// The pages of one chunk, in order.
struct AttendChunk {
  const AttendPage* pages;
  int count;
};

// Floats of a query's terms, for products with codes: the sums of its elements by group, and its
// step where elements are rounded to integers.
[[gnu::always_inline]] inline int query_terms(const CodeBlock& codes) {
  return codes.groups + 1;
}

// Scratch floats of a tile whose KV heads have `rows` rows together:
//   queries                    [rows][query_stride]
//   scores                     [kAttendBatchRows][64]
//   weights, bf16              [kAttendBatchRows][64]
//   a block's values, bf16     a copy; if they are in the keys, two, or one in float32
// and for quantized pages:
//   a block's keys, bf16
//   a group's scores, weights  [kAttendGroupRows][64]
//   queries for page 0         [rows][query_stride]
//   terms of the queries       [rows][query_terms()]
[[gnu::always_inline]] inline std::size_t scratch_floats(const AttendShape& shape, int rows) {
  int floats = rows * shape.query_stride + kAttendBatchRows * kAttendBlock * 3 / 2 +
               shape.value_chunks * kAttendBlock * (shape.values_in_keys ? 16 : 8);
  if (shape.key_codes.is_quantized()) {
    floats += shape.query_stride / 2 * kAttendBlock + kAttendGroupRows * kAttendBlock +
              rows * (shape.query_stride + query_terms(shape.key_codes));
  }
  return static_cast<std::size_t>(floats);
}

// Floats of the online softmax of `rows` rows of one KV head: values [rows][value_chunks * 16],
// sums [rows][16], maxima [rows], padded to cache lines. A tile's state is that of all its KV
// heads.
[[gnu::always_inline]] inline std::size_t state_floats(const AttendShape& shape, int rows) {
  const auto floats = static_cast<std::size_t>(rows) * (shape.value_chunks * kLanes + kLanes + 1);
  return (floats + kLanes - 1) / kLanes * kLanes;
}

// New rows of one KV head for slots [slot, slot + count) of its block.
struct PageRows {
  const float* keys;  // [count][key_stride]
  const float* values;
  std::ptrdiff_t key_stride;
  std::ptrdiff_t value_stride;
  int slot;
  int count;
  std::byte* block;
};

struct AttendBodies {
  // Scales the tile's queries into the scratch memory; called before the others.
  void (*load_queries)(const AttendShape& shape, const AttendTile& tile, float* scratch);
  // Sets `state` to the softmax over one chunk.
  void (*attend_chunk)(
      const AttendShape& shape,
      const AttendTile& tile,
      const AttendChunk& chunk,
      float* scratch,
      float* state
  );
  // Merges the state of chunk number chunk_index into `total`, for rows that see any of its keys. A
  // row's first chunk is copied, so `total` need not be initialized. With one chunk only, its state
  // is the result.
  void (*merge)(
      const AttendShape& shape,
      const AttendTile& tile,
      std::int64_t chunk_index,
      const float* state,
      float* total
  );
  // Adds sinks to the sums, divides by them (multiplies by their inverses) and writes the tile's
  // rows of `out`.
  void (*finish)(const AttendShape& shape, const AttendTile& tile, const float* total);
  // Writes rows to bf16 pages as write_key and write_value do (kv_pages.h). Null where it would not
  // be faster.
  void (*write_bf16_rows)(const AttendShape& shape, const PageRows& rows);
};

}  // namespace saker::kernels
