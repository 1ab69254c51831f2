// SPDX-License-Identifier: Apache-2.0
// Attention of one instruction set; bodies.h states the order of additions.
#include "saker/kernels/attention/bodies.h"
#include "saker/kernels/attention/clean_values.h"
#include "saker/kernels/attention/pair_products.h"
#include "saker/kernels/attention/products.h"
#include "saker/kernels/attention/quantized.h"
#include "saker/kernels/attention/softmax.h"
#include "saker/kernels/attention/state.h"
#if defined(__AMX_BF16__) || defined(SAKER_EMULATE_AMX)
#include "saker/kernels/attention/tile_products.h"
#endif
#include "saker/kernels/cpu/vec.h"
#include "saker/kernels/cpu/vec_math.h"

namespace saker::kernels::SAKER_ISA {
namespace {

#if defined(__AMX_BF16__) || defined(SAKER_EMULATE_AMX)
using Bf16Products = TileProducts;
#elif defined(SAKER_BF16_DOT)
using Bf16Products = PairProducts;
#else
using Bf16Products = FloatProducts<true>;
#endif

void clear(const AttendShape& shape, const AttendTile& tile, float* floats) {
  const State state = state_of(shape, tile, floats);
  for (int row = 0; row < tile.count; ++row) {
    state.maxima[row] = kFloor;
    store(state.sums + row * kVector, zero());
    for (int i = 0; i < state.stride; i += kVector) {
      store(state.values + row * state.stride + i, zero());
    }
  }
}

// The tile's scratch memory, see scratch_floats.
struct Scratch {
  float* queries;
  float* scores;
  std::uint32_t* weights;
  std::uint32_t* clean;
  CodeScratch codes;
};

Scratch scratch_of(const AttendShape& shape, const AttendTile& tile, float* floats) {
  float* scores = floats + tile.count * shape.query_stride;
  float* weights = scores + kAttendBatchRows * kBlock;
  auto* clean = reinterpret_cast<std::uint32_t*>(weights + kAttendBatchRows * kBlock / 2);
  std::uint32_t* keys = clean + shape.value_chunks * kBlock * 8;
  float* part = reinterpret_cast<float*>(keys + shape.query_stride / 2 * kBlock);
  // Quantized values need no cleaning, so their pairs lie there.
  const CodeScratch codes{keys, clean, part, part + kAttendGroupRows * kBlock};
  return {floats, scores, reinterpret_cast<std::uint32_t*>(weights), clean, codes};
}

// Works on rows of a tile and one block: all scores, then all weights, then all values. So products
// come in long runs, and what one step wrote to memory lies there when the next one loads it.
template <typename Products>
class Batch {
 public:
  Batch(const AttendShape& shape, const State& state) : shape_(shape), state_(state) {}

  // Starts on rows of a block; `values` are the page's, also where the block holds clean ones.
  void start(const Block& block, const std::byte* values) {
    if constexpr (Products::kUnpacks) {
      // What was just written to memory is slow to load as a tile: other work comes between.
      Products::unpack_block_keys(shape_, block);
    }
    finish();
    block_ = block;
    values_ = values;
    count_ = 0;
    rows_ = 0;
  }

  // Memory for the keys that the next group's rows see.
  BlockKeys* keys() { return keys_ + rows_; }

  // Adds rows [first, first + rows) of the tile; keys() is filled in.
  void add(int first, int rows, bool whole) {
    groups_[count_++] = {first, rows, whole, keys()};
    rows_ += rows;
  }

  void run() {
    each_group([&](const Block& block, const RowGroup& group) {
      registers_.set_rows(group.rows);
      Products::score(shape_, block, group);
    });
    if constexpr (Products::kUnpacks) {
      Products::unpack_block_values(shape_, block_);
    } else {
      finish();
    }
  }

  // Ends what was run; without effect where nothing is left.
  void finish() {
    each_group([&](const Block& block, const RowGroup& group) {
      soften<Products>(shape_, block, group, state_);
    });
    each_group([&](const Block& block, const RowGroup& group) {
      registers_.set_rows(group.rows);
      Products::add_values(shape_, block, group, state_);
      if constexpr (Products::kWholeBlocks) {
        if (values_ != block.values) {
          add_values_left_out(shape_, block, group, state_, values_);
        }
      }
    });
    count_ = 0;
  }

 private:
  template <typename Step>
  [[gnu::always_inline]] void each_group(const Step& step) {
    Block block = block_;
    for (int g = 0; g < count_; ++g) {
      step(block, groups_[g]);
      block.scores += groups_[g].rows * kBlock;
      block.weights += groups_[g].rows * kBlock / 2;
    }
  }

  const AttendShape& shape_;
  const State& state_;
  Block block_{};
  const std::byte* values_ = nullptr;
  RowGroup groups_[kAttendBatchRows] = {};
  BlockKeys keys_[kAttendBatchRows] = {};
  typename Products::Registers registers_;
  int count_ = 0;
  int rows_ = 0;
};

// Runs of rows [first, end) that see the block become groups.
template <typename Products>
void add_group(
    const AttendShape& shape,
    const AttendTile& tile,
    std::int64_t block_begin,
    int first,
    int end,
    Batch<Products>& batch
) {
  const auto sees_block = [&](int row, BlockKeys& keys) {
    keys = keys_in_block(tile.seen[(tile.first + row) / shape.group], block_begin);
    return sees(keys);
  };
  for (int row = first; row < end; ++row) {
    BlockKeys* keys = batch.keys();
    const int begin = row;
    while (row < end && sees_block(row, keys[row - begin])) {
      ++row;
    }
    if (row > begin) {
      batch.add(begin, row - begin, false);
    }
  }
}

// Groups of nearly equal size from rows [first, end).
template <typename Products>
void add_groups(
    const AttendShape& shape,
    const AttendTile& tile,
    std::int64_t block_begin,
    int first,
    int end,
    Batch<Products>& batch
) {
  // Both ends of what rows see only grow from row to row.
  const SeenKeys& first_seen = tile.seen[(tile.first + first) / shape.group];
  const SeenKeys& last_seen = tile.seen[(tile.first + end - 1) / shape.group];
  const bool whole = last_seen.begin <= block_begin && first_seen.end >= block_begin + kBlock;
  const int count = end - first;
  const int groups = (count + Products::kGroupRows - 1) / Products::kGroupRows;
  for (int g = 0; g < groups; ++g) {
    const int from = first + g * count / groups;
    const int to = first + (g + 1) * count / groups;
    if (whole) {
      for (int row = from; row < to; ++row) {
        batch.keys()[row - from] = {0, 0, 0, kBlock};
      }
      batch.add(from, to - from, true);
    } else {
      add_group(shape, tile, block_begin, from, to, batch);
    }
  }
}

template <typename Products>
void attend_blocks(
    const AttendShape& shape,
    const AttendTile& tile,
    const AttendChunk& chunk,
    Scratch& scratch,
    const State& state,
    bool clean
) {
  Batch<Products> batch(shape, state);
  // Unpacked blocks serve all rows; else few rows stay close while keys and values pass by.
  const int together = Products::kUnpacks ? tile.count : kAttendBatchRows;
  for (int begin = 0; begin < tile.count; begin += together) {
    const int end = begin + together < tile.count ? begin + together : tile.count;
    for (int i = 0; i < chunk.count; ++i) {
      const std::byte* keys = chunk.pages[i].data + tile.kv_head * shape.head_bytes;
      const std::byte* values = keys + shape.key_bytes;
      if (clean) {
        clean_values(shape, values, scratch.clean);
      }
      const bool is_last = i + 1 == chunk.count;
      const Block block{
          chunk.pages[i].index * kBlock,
          keys,
          clean ? reinterpret_cast<const std::byte*>(scratch.clean) : values,
          is_last ? values : chunk.pages[i + 1].data + tile.kv_head * shape.head_bytes,
          scratch.queries,
          scratch.scores,
          scratch.weights,
          &scratch.codes,
      };
      for (int row = begin; row < end; row += kAttendBatchRows) {
        batch.start(block, values);
        const int last = row + kAttendBatchRows < end ? row + kAttendBatchRows : end;
        add_groups(shape, tile, block.begin, row, last, batch);
        batch.run();
      }
    }
  }
  batch.finish();
}

template <typename Products>
void attend_chunk_by(
    const AttendShape& shape,
    const AttendTile& tile,
    const AttendChunk& chunk,
    float* scratch_floats,
    float* floats
) {
  Scratch scratch = scratch_of(shape, tile, scratch_floats);
  const State state = state_of(shape, tile, floats);
  if constexpr (Products::kUnpacks) {
    scratch.codes.in_place = Products::reads_codes(tile.count);
  }
  clear(shape, tile, floats);
  attend_blocks<Products>(shape, tile, chunk, scratch, state, false);
  if constexpr (Products::kWholeBlocks) {
    if (!is_finite(state, tile.count)) {
      clear(shape, tile, floats);
      attend_blocks<Products>(shape, tile, chunk, scratch, state, true);
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
  if (shape.key_codes.is_quantized()) {
    if (shape.bf16) {
      attend_chunk_by<QuantizedProducts<Bf16Products>>(shape, tile, chunk, scratch, state);
    } else {
      attend_chunk_by<QuantizedProducts<FloatProducts<true>>>(shape, tile, chunk, scratch, state);
    }
  } else if (shape.bf16) {
    attend_chunk_by<Bf16Products>(shape, tile, chunk, scratch, state);
  } else {
    attend_chunk_by<FloatProducts<false>>(shape, tile, chunk, scratch, state);
  }
}

template <typename Products>
void load_queries_for(const AttendShape& shape, const AttendTile& tile, float* scratch) {
  const CodeScratch codes = scratch_of(shape, tile, scratch).codes;
  for (int j = 0; j < tile.count; ++j) {
    const int flat = tile.first + j;
    const int head = tile.kv_head * shape.group + flat % shape.group;
    const float* from =
        tile.q.data + flat / shape.group * tile.q.row_stride + head * tile.q.head_stride;
    // Rounded queries take half of this: the next one begins in its second half.
    float* to = scratch + j * query_words<Products>(shape);
    for (int d = 0; d < shape.head_dim; ++d) {
      to[d] = from[d] * shape.scale;
    }
    for (int d = shape.head_dim; d < shape.query_stride; ++d) {
      to[d] = 0.0F;
    }
    Products::round_query(to, shape.query_stride);
    sum_groups<Products>(shape.key_codes, to, codes.query_sums + j * shape.key_codes.groups);
  }
}

void load_queries(const AttendShape& shape, const AttendTile& tile, float* scratch) {
  if (shape.bf16) {
    load_queries_for<Bf16Products>(shape, tile, scratch);
  } else {
    load_queries_for<FloatProducts<true>>(shape, tile, scratch);
  }
}

void merge(
    const AttendShape& shape,
    const AttendTile& tile,
    std::int64_t chunk_index,
    const float* state_floats,
    float* total_floats
) {
  constexpr std::int64_t kChunkKeys = kAttendChunkBlocks * kBlock;
  const State part = state_of(shape, tile, const_cast<float*>(state_floats));
  const State total = state_of(shape, tile, total_floats);
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

void finish(const AttendShape& shape, const AttendTile& tile, const float* floats) {
  const State total = state_of(shape, tile, const_cast<float*>(floats));
  for (int j = 0; j < tile.count; ++j) {
    const int flat = tile.first + j;
    const int head = tile.kv_head * shape.group + flat % shape.group;
    const std::ptrdiff_t row = flat / shape.group;
    float* out = tile.out + (row * shape.heads + head) * shape.value_head_dim;
    const F32x16 sum = broadcast(reduce_add(load(total.sums + j * kVector)));
    for (int i = 0; i < shape.value_head_dim; i += kVector) {
      const int left = shape.value_head_dim - i;
      const F32x16 value = div(load(total.values + j * total.stride + i), sum);
      store_part(out + i, value, left < kVector ? left : kVector);
    }
  }
}

}  // namespace

extern const AttendBodies attend_bodies;

const AttendBodies attend_bodies = {load_queries, attend_chunk, merge, finish};

}  // namespace saker::kernels::SAKER_ISA
