// SPDX-License-Identifier: Apache-2.0
// Attention of one instruction set; bodies.h states the order of additions.
#include "saker/kernels/attention/bodies.h"
#include "saker/kernels/attention/clean_values.h"
#include "saker/kernels/attention/products.h"
#include "saker/kernels/attention/quantized.h"
#include "saker/kernels/attention/state.h"
#if defined(__AMX_BF16__) || defined(SAKER_EMULATE_AMX)
#include "saker/kernels/attention/tile_products.h"
#endif
#include "saker/kernels/cpu/vec.h"
#include "saker/kernels/cpu/vec_curves.h"
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

// The maximum of no keys: finite, so that differences of maxima are never NaN.
constexpr float kFloor = -0x1.fffffep127F;

inline F32x16 capped(F32x16 score, float cap) {
  return mul(broadcast(cap), tanh(div(score, broadcast(cap))));
}

// Turns one row's scores into weights, and brings its state to the new maximum.
void soften(
    const AttendShape& shape, const BlockKeys& keys, const State& state, int row, float* scores
) {
  const bool whole = keys.second == 0 && keys.second_end == kBlock;
  F32x16 score[4];
  F32x16 top = broadcast(kFloor);
  for (int v = 0; v < 4; ++v) {
    score[v] = load(scores + v * kVector);
    if (shape.softcap > 0) {
      score[v] = capped(score[v], shape.softcap);
    }
    if (!whole) {
      const U32x16 mask = seen_mask(keys, v);
      const U32x16 hidden = sub_u32(broadcast_u32(0xffffffffU), mask);
      const U32x16 floor = bit_and(hidden, as_u32(broadcast(kFloor)));
      score[v] = as_float(bit_or(bit_and(mask, as_u32(score[v])), floor));
    }
    top = max(top, score[v]);
  }
  const float before = state.maxima[row];
  const float block_top = reduce_max(top);
  const float after = block_top > before ? block_top : before;
  F32x16 part[4];
  for (int v = 0; v < 4; ++v) {
    part[v] = exp(sub(score[v], broadcast(after)));
    if (!whole) {
      part[v] = as_float(bit_and(seen_mask(keys, v), as_u32(part[v])));
    }
    store(scores + v * kVector, part[v]);
  }
  F32x16 sum = load(state.sums + row * kVector);
  if (after != before) {
    // Skipping a factor of exactly 1 changes no bit.
    const F32x16 factor = exp(broadcast(before - after));
    sum = mul(sum, factor);
    scale_row(state.values + row * state.stride, state.stride, factor);
    state.maxima[row] = after;
  }
  sum = add(sum, add(add(part[0], part[1]), add(part[2], part[3])));
  store(state.sums + row * kVector, sum);
}

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
  float* weights = scores + 2 * kAttendGroupRows * kBlock;
  auto* clean = reinterpret_cast<std::uint32_t*>(weights + kAttendGroupRows * kBlock / 2);
  std::uint32_t* keys = clean + shape.value_chunks * kBlock * 8;
  float* part = reinterpret_cast<float*>(keys + shape.query_stride / 2 * kBlock);
  // Quantized values need no cleaning, so their pairs lie there.
  const CodeScratch codes{keys, clean, part, part + kAttendGroupRows * kBlock};
  return {floats, scores, reinterpret_cast<std::uint32_t*>(weights), clean, codes};
}

// Some rows of a tile and one block.
struct Unit {
  Block block;
  RowGroup group;
  BlockKeys keys[kAttendGroupRows];
  const std::byte* values;  // The page's, also where the block holds clean ones.
};

// Works through a chunk's units in order. A unit's scores are computed before the one ahead of it
// is finished, so that matrix units and memory have work while exponentials are taken.
template <typename Products>
class Pipeline {
 public:
  Pipeline(const AttendShape& shape, const State& state) : shape_(shape), state_(state) {}

  // The unit to fill in; its memory is free.
  Unit& next() { return units_[turn_ % 2]; }

  // Starts what next() gave.
  void push() {
    Unit& unit = next();
    unit.group.keys = unit.keys;
    unit.block.scores += turn_ % 2 * kAttendGroupRows * kBlock;
    if constexpr (Products::kUnpacks) {
      // What was just written to memory is slow to load as a tile: other work comes between.
      Products::unpack_block_keys(shape_, unit.block);
      flush();
      score(unit);
      Products::unpack_block_values(shape_, unit.block);
    } else {
      score(unit);
      flush();
    }
    waiting_ = true;
    ++turn_;
  }

  // Finishes what was started.
  void flush() {
    if (waiting_) {
      finish(units_[(turn_ + 1) % 2]);
    }
    waiting_ = false;
  }

 private:
  void score(const Unit& unit) {
    registers_.set_rows(unit.group.rows);
    Products::score(shape_, unit.block, unit.group);
  }

  void finish(const Unit& unit) {
    for (int r = 0; r < unit.group.rows; ++r) {
      float* scores = unit.block.scores + r * kBlock;
      soften(shape_, unit.keys[r], state_, unit.group.first + r, scores);
    }
    registers_.set_rows(unit.group.rows);
    Products::add_values(shape_, unit.block, unit.group, state_);
    if constexpr (Products::kWholeBlocks) {
      if (unit.values != unit.block.values) {
        add_values_left_out(shape_, unit.block, unit.group, state_, unit.values);
      }
    }
  }

  const AttendShape& shape_;
  const State& state_;
  Unit units_[2];
  typename Products::Registers registers_;
  int turn_ = 0;
  bool waiting_ = false;
};

// Runs of the group's rows that see the block go together.
template <typename Products>
void attend_group(
    const AttendShape& shape,
    const AttendTile& tile,
    const Block& block,
    const std::byte* values,
    const RowGroup& group,
    Pipeline<Products>& pipeline
) {
  const int end = group.first + group.rows;
  const auto sees_block = [&](int row, BlockKeys& keys) {
    keys = keys_in_block(tile.seen[(tile.first + row) / shape.group], block.begin);
    return sees(keys);
  };
  for (int row = group.first; row < end; ++row) {
    Unit& unit = pipeline.next();
    const int begin = row;
    while (row < end && sees_block(row, unit.keys[row - begin])) {
      ++row;
    }
    if (row > begin) {
      unit.block = block;
      unit.group = {begin, row - begin, nullptr};
      unit.values = values;
      pipeline.push();
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
  const int groups = (tile.count + Products::kGroupRows - 1) / Products::kGroupRows;
  Pipeline<Products> pipeline(shape, state);
  for (int i = 0; i < chunk.count; ++i) {
    const std::byte* keys = chunk.pages[i].data + tile.kv_head * shape.head_bytes;
    const std::byte* values = keys + shape.key_bytes;
    if (clean) {
      pipeline.flush();
      clean_values(shape, values, scratch.clean);
    }
    const Block block{
        chunk.pages[i].index * kBlock,
        keys,
        clean ? reinterpret_cast<const std::byte*>(scratch.clean) : values,
        scratch.queries,
        scratch.scores,
        scratch.weights,
        &scratch.codes,
    };
    for (int g = 0; g < groups; ++g) {
      // Groups of nearly equal size.
      const int first = g * tile.count / groups;
      const int rows = (g + 1) * tile.count / groups - first;
      attend_group(shape, tile, block, values, {first, rows, nullptr}, pipeline);
    }
  }
  pipeline.flush();
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

void load_queries(const AttendShape& shape, const AttendTile& tile, float* scratch) {
  const CodeScratch codes = scratch_of(shape, tile, scratch).codes;
  for (int j = 0; j < tile.count; ++j) {
    const int flat = tile.first + j;
    const int head = tile.kv_head * shape.group + flat % shape.group;
    const float* from =
        tile.q.data + flat / shape.group * tile.q.row_stride + head * tile.q.head_stride;
    float* to = scratch + j * shape.query_stride;
    for (int d = 0; d < shape.head_dim; ++d) {
      to[d] = from[d] * shape.scale;
    }
    for (int d = shape.head_dim; d < shape.query_stride; ++d) {
      to[d] = 0.0F;
    }
    float* sums = codes.query_sums + j * shape.key_codes.groups;
    if (shape.bf16) {
      Bf16Products::round_query(to, shape.query_stride);
      sum_groups<Bf16Products>(shape.key_codes, to, sums);
    } else {
      sum_groups<FloatProducts<true>>(shape.key_codes, to, sums);
    }
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
