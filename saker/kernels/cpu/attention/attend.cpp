// SPDX-License-Identifier: Apache-2.0
// Attention of one instruction set; bodies.h states the order of additions.
#include "saker/kernels/cpu/attention/batch.h"
#include "saker/kernels/cpu/attention/code_products.h"
#include "saker/kernels/cpu/attention/mask_nonfinite.h"
#include "saker/kernels/cpu/attention/pair_products.h"
#include "saker/kernels/cpu/attention/products.h"
#include "saker/kernels/cpu/attention/quantized.h"
#include "saker/kernels/cpu/attention/softmax.h"
#include "saker/kernels/cpu/attention/state.h"
#include "saker/kernels/cpu/attention/turned_values.h"
#include "saker/kernels/cpu/dispatch/attend_bodies.h"
#if defined(SAKER_TRANSPOSES)
#include "saker/kernels/cpu/attention/page_rows.h"
#endif
#if defined(__AMX_BF16__) || defined(SAKER_EMULATE_AMX)
#include "saker/kernels/cpu/attention/tile_code_products.h"
#include "saker/kernels/cpu/attention/tile_products.h"
#endif
#include "saker/kernels/cpu/simd/vec.h"
#include "saker/kernels/cpu/simd/vec_math.h"

namespace saker::kernels::SAKER_ISA {
namespace {

#if defined(__AMX_BF16__) || defined(SAKER_EMULATE_AMX)
using Bf16Products = TileProducts;
#elif defined(SAKER_BF16_DOT)
using Bf16Products = PairProducts;
#else
using Bf16Products = FloatProducts<true>;
#endif

// For pages whose scales and biases are bf16.
#if defined(__AMX_INT8__) || defined(SAKER_EMULATE_AMX)
using Bf16CodeProducts = TileCodeProducts;
#elif defined(SAKER_INT16_DOT)
using Bf16CodeProducts = CodeProducts;
#else
using Bf16CodeProducts = QuantizedProducts<Bf16Products>;
#endif

// Calls function<Products>() with the products for these pages.
template <typename Function>
void with_products(const AttendShape& shape, const Function& function) {
  if (shape.key_codes.is_quantized()) {
    if (shape.bf16) {
      function.template operator()<Bf16CodeProducts>();
    } else {
      function.template operator()<QuantizedProducts<FloatProducts<true>>>();
    }
  } else if (shape.bf16) {
    function.template operator()<Bf16Products>();
  } else {
    function.template operator()<FloatProducts<false>>();
  }
}

void clear(const State& state, int rows) {
  for (int row = 0; row < rows; ++row) {
    state.maxima[row] = kFloor;
    store(state.sums + row * kVector, zero());
    for (int i = 0; i < state.stride; i += kVector) {
      store(state.values + row * state.stride + i, zero());
    }
  }
}

// The tile's scratch memory, see scratch_floats; queries and their terms by KV head.
struct Scratch {
  float* queries;
  float* scores;
  std::uint32_t* weights;
  std::uint32_t* clean;
  CodeScratch codes;
  float* first_queries;  // For page 0 of a quantized cache.
  float* query_terms;
};

Scratch scratch_of(const AttendShape& shape, const AttendTile& tile, float* floats) {
  float* scores = floats + tile.kv_heads * tile.count * shape.query_stride;
  float* weights = scores + kAttendBatchRows * kBlock;
  auto* clean = reinterpret_cast<std::uint32_t*>(weights + kAttendBatchRows * kBlock / 2);
  std::uint32_t* keys = clean + shape.value_chunks * kBlock * 8;
  float* part = reinterpret_cast<float*>(keys + shape.query_stride / 2 * kBlock);
  // Quantized values are never masked, so their pairs use that memory.
  float* first_queries = part + kAttendGroupRows * kBlock;
  float* query_terms = first_queries + tile.kv_heads * tile.count * shape.query_stride;
  const CodeScratch codes{keys, clean, part};
  auto* weight_words = reinterpret_cast<std::uint32_t*>(weights);
  return {floats, scores, weight_words, clean, codes, first_queries, query_terms};
}

// KV heads [first, end) of the tile.
struct HeadRange {
  int first;
  int end;
};

// Goes page by page, and head by head within a page.
template <typename Products>
class ChunkWalk {
 public:
  ChunkWalk(
      const AttendShape& shape, const AttendTile& tile, const AttendChunk& chunk, Scratch& scratch
  )
      : shape_(shape), tile_(tile), chunk_(chunk), scratch_(scratch) {}

  // Adds the chunk to the heads' states in `floats`. `clean`: non-finite values count as zeros.
  void run(HeadRange heads, float* floats, bool clean) {
    Batch<Products> batch(shape_);
    // An unpacked block serves all rows. Otherwise few rows stay in cache while keys and values
    // stream by.
    const bool unpacks = Products::kUnpacks || shape_.values_in_keys;
    const int together = unpacks ? tile_.count : kAttendBatchRows;
    for (int begin = 0; begin < tile_.count; begin += together) {
      const int end = begin + together < tile_.count ? begin + together : tile_.count;
      for (int page = 0; page < chunk_.count; ++page) {
        for (int head = heads.first; head < heads.end; ++head) {
          const std::byte* values = values_of(page, head);
          const Block block = block_of(page, head, heads, values, clean);
          add_rows(begin, end, block, values, state_of(shape_, tile_, head, floats), batch);
        }
      }
    }
  }

 private:
  // Adds rows [begin, end) of the tile against one block.
  void add_rows(
      int begin,
      int end,
      const Block& block,
      const std::byte* values,
      const State& state,
      Batch<Products>& batch
  ) const {
    for (int row = begin; row < end; row += kAttendBatchRows) {
      batch.start(block, values, state);
      const int last = row + kAttendBatchRows < end ? row + kAttendBatchRows : end;
      add_groups(shape_, tile_, block.begin, row, last, batch);
      batch.run();
    }
  }

  const std::byte* keys_of(int page, int head) const {
    return chunk_.pages[page].data + (tile_.kv_head + head) * shape_.head_bytes;
  }

  // A block's values in a page's order: the page's memory, or scratch memory.
  const std::byte* values_of(int page, int head) const {
    if (!shape_.values_in_keys) {
      return keys_of(page, head) + shape_.key_bytes;
    }
    turn_values(shape_, keys_of(page, head), scratch_.clean);
    return reinterpret_cast<const std::byte*>(scratch_.clean);
  }

  Block block_of(int page, int head, HeadRange heads, const std::byte* values, bool clean) const {
    const std::byte* next = values;
    if (head + 1 < heads.end) {
      next = keys_of(page, head + 1);
    } else if (page + 1 < chunk_.count) {
      next = keys_of(page + 1, heads.first);
    }
    std::uint32_t* masked = scratch_.clean;
    if (shape_.values_in_keys) {
      masked += turned_words(shape_);
    }
    if (clean) {
      mask_nonfinite(shape_, values, masked);
    }
    return {
        chunk_.pages[page].index * kBlock,
        keys_of(page, head),
        clean ? reinterpret_cast<const std::byte*>(masked) : values,
        next,
        scratch_.queries + head * tile_.count * query_words<Products>(shape_),
        scratch_.query_terms + head * tile_.count * query_terms(shape_.key_codes),
        scratch_.scores,
        scratch_.weights,
        &scratch_.codes,
    };
  }

  const AttendShape& shape_;
  const AttendTile& tile_;
  const AttendChunk& chunk_;
  Scratch& scratch_;
};

// Adds pages of a chunk to the heads' states. Products that take whole blocks may have to restart,
// so their pages must come first.
template <typename Products>
void add_pages(
    const AttendShape& shape,
    const AttendTile& tile,
    const AttendChunk& chunk,
    Scratch scratch,
    float* floats
) {
  if constexpr (Products::kUnpacks) {
    scratch.codes.in_place = Products::reads_codes(tile.count);
  }
  ChunkWalk<Products> walk(shape, tile, chunk, scratch);
  walk.run({0, tile.kv_heads}, floats, false);
  if constexpr (Products::kWholeBlocks) {
    for (int head = 0; head < tile.kv_heads; ++head) {
      const State state = state_of(shape, tile, head, floats);
      if (!is_finite(state, tile.count)) {
        clear(state, tile.count);
        walk.run({head, head + 1}, floats, true);
      }
    }
  }
}

void attend_chunk(
    const AttendShape& shape,
    const AttendTile& tile,
    const AttendChunk& chunk,
    float* scratch,
    float* state
) {
  for (int head = 0; head < tile.kv_heads; ++head) {
    clear(state_of(shape, tile, head, state), tile.count);
  }
  const Scratch views = scratch_of(shape, tile, scratch);
  AttendChunk rest = chunk;
  if (shape.key_codes.is_quantized() && chunk.count > 0 && chunk.pages[0].index == 0) {
    const AttendShape first = first_page_shape(shape);
    Scratch first_views = views;
    first_views.queries = views.first_queries;
    with_products(first, [&]<typename Products>() {
      add_pages<Products>(first, tile, {chunk.pages, 1}, first_views, state);
    });
    rest = {chunk.pages + 1, chunk.count - 1};
  }
  with_products(shape, [&]<typename Products>() {
    add_pages<Products>(shape, tile, rest, views, state);
  });
}

// Source and destination of row `row_index` of the tile's KV head number `head_index`.
struct TileRow {
  std::ptrdiff_t row;  // In the span.
  int head;            // Among all query heads.

  TileRow(const AttendShape& shape, const AttendTile& tile, int head_index, int row_index) {
    const int flat = tile.first + row_index;
    row = flat / shape.group;
    head = (tile.kv_head + head_index) * shape.group + flat % shape.group;
  }
};

// Scales a query, possibly in place, padded with zeros to whole steps.
void scale_query(const AttendShape& shape, const float* from, float* to) {
  const F32x16 scale = broadcast(shape.scale);
  for (int d = 0; d < shape.query_stride; d += kVector) {
    const int left = shape.head_dim - d;
    const F32x16 lanes =
        left >= kVector ? load(from + d) : load_part(from + d, left > 0 ? left : 0);
    store(to + d, mul(lanes, scale));
  }
}

void load_scaled(const AttendShape& shape, const AttendTile& tile, const TileRow& of, float* to) {
  if (tile.q.made != nullptr) {
    tile.q.made->make(tile.q.first_made + of.row, of.head, to);
    scale_query(shape, to, to);
    return;
  }
  const float* from = tile.q.data + of.row * tile.q.row_stride + of.head * tile.q.head_stride;
  const auto* ahead = reinterpret_cast<const std::byte*>(from + kHeadRowsAhead * tile.q.row_stride);
  for (int d = 0; d < shape.head_dim; d += kVector) {
    prefetch(ahead + d * sizeof(float));
  }
  scale_query(shape, from, to);
}

// Converts each scaled query to the form that Products multiply. The call load_row(head, row, to)
// gives the scaled query.
template <typename Products, typename Load>
void load_queries_for(
    const AttendShape& shape, const AttendTile& tile, float* to, float* terms, const Load& load_row
) {
  // Rounded queries take half of their floats: the next query begins in the second half.
  for (int head = 0; head < tile.kv_heads; ++head) {
    for (int row = 0; row < tile.count; ++row) {
      load_row(head, row, to);
      Products::load_query(shape, to, terms);
      to += query_words<Products>(shape);
      terms += query_terms(shape.key_codes);
    }
  }
}

void load_queries(const AttendShape& shape, const AttendTile& tile, float* scratch) {
  const Scratch views = scratch_of(shape, tile, scratch);
  const auto load_row = [&](int head, int row, float* to) {
    load_scaled(shape, tile, TileRow(shape, tile, head, row), to);
  };
  with_products(shape, [&]<typename Products>() {
    load_queries_for<Products>(shape, tile, views.queries, views.query_terms, load_row);
  });
  if (shape.key_codes.is_quantized()) {
    const AttendShape first = first_page_shape(shape);
    with_products(first, [&]<typename Products>() {
      load_queries_for<Products>(first, tile, views.first_queries, views.query_terms, load_row);
    });
  }
}

// Merges a chunk's state `part` into `total`, for the rows of one KV head.
void merge_head(
    const AttendShape& shape,
    const AttendTile& tile,
    std::int64_t chunk_index,
    const State& part,
    const State& total
) {
  constexpr std::int64_t kChunkKeys = kAttendChunkBlocks * kBlock;
  const std::int64_t begin = chunk_index * kChunkKeys;
  const std::int64_t end = begin + kChunkKeys;
  for (int j = 0; j < tile.count; ++j) {
    const SeenKeys& seen = tile.seen[(tile.first + j) / shape.group];
    const bool keeps = seen.keep_begin < seen.keep_end;
    const bool sees_kept = keeps && seen.keep_begin < end && seen.keep_end > begin;
    if (!sees_kept && (seen.begin >= end || seen.end <= begin)) {
      continue;
    }
    float* sums = total.sums + j * kVector;
    float* values = total.values + j * total.stride;
    const float* part_sums = part.sums + j * kVector;
    const float* part_values = part.values + j * total.stride;
    if (chunk_index == (keeps ? seen.keep_begin : seen.begin) / kChunkKeys) {
      total.maxima[j] = part.maxima[j];
      store(sums, load(part_sums));
      for (int i = 0; i < total.stride; i += kVector) {
        store(values + i, load(part_values + i));
      }
      continue;
    }
    const float before = total.maxima[j];
    const float other = part.maxima[j];
    const float after = other > before ? other : before;
    const F32x16 a = exp(broadcast(before - after));
    const F32x16 b = exp(broadcast(other - after));
    const auto join = [&](float* into, const float* from) {
      store(into, fma(load(into), a, mul(load(from), b)));
    };
    join(sums, part_sums);
    for (int i = 0; i < total.stride; i += kVector) {
      join(values + i, part_values + i);
    }
    total.maxima[j] = after;
  }
}

void merge(
    const AttendShape& shape,
    const AttendTile& tile,
    std::int64_t chunk_index,
    const float* state,
    float* total
) {
  for (int head = 0; head < tile.kv_heads; ++head) {
    const State part = state_of(shape, tile, head, const_cast<float*>(state));
    merge_head(shape, tile, chunk_index, part, state_of(shape, tile, head, total));
  }
}

// The inverse of the sum of a row's exponentials, which multiplies its values. A sink joins
// them under the maximum of both.
F32x16 row_share(const AttendShape& shape, int head, float sum, float maximum) {
  if (shape.sinks == nullptr) {
    return broadcast(1.0F / sum);
  }
  const float sink = shape.sinks[head];
  const float top = sink > maximum ? sink : maximum;
  const F32x16 of_keys = exp(broadcast(maximum - top));
  return div(of_keys, fma(broadcast(sum), of_keys, exp(broadcast(sink - top))));
}

void finish(const AttendShape& shape, const AttendTile& tile, const float* floats) {
  for (int head = 0; head < tile.kv_heads; ++head) {
    const State total = state_of(shape, tile, head, const_cast<float*>(floats));
    for (int row = 0; row < tile.count; ++row) {
      const TileRow of(shape, tile, head, row);
      float* out = tile.out + (of.row * shape.heads + of.head) * shape.value_head_dim;
      const float* values = total.values + row * total.stride;
      const float sum = reduce_add(load(total.sums + row * kVector));
      const F32x16 share = row_share(shape, of.head, sum, total.maxima[row]);
      for (int i = 0; i < shape.value_head_dim; i += kVector) {
        const int left = shape.value_head_dim - i;
        store_part(out + i, mul(load(values + i), share), left < kVector ? left : kVector);
      }
    }
  }
}

}  // namespace

extern const AttendBodies attend_bodies;

const AttendBodies attend_bodies = {
    .load_queries = load_queries,
    .attend_chunk = attend_chunk,
    .merge = merge,
    .finish = finish,
#if defined(SAKER_TRANSPOSES)
    .write_bf16_rows = write_bf16_rows,
#else
    .write_bf16_rows = nullptr,
#endif
};

}  // namespace saker::kernels::SAKER_ISA
