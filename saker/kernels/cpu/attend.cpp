// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/cpu/attend_blocks.h"
#include "saker/kernels/cpu/attend_bodies.h"
#include "saker/kernels/cpu/attend_scores.h"
#include "saker/kernels/cpu/attend_values.h"
#include "saker/kernels/cpu/vec.h"
#include "saker/kernels/cpu/vec_curves.h"
#include "saker/kernels/cpu/vec_math.h"

namespace saker::kernels::SAKER_ISA {
namespace {

// The maximum of no keys: finite, so that differences of maxima are never NaN.
constexpr float kFloor = -0x1.fffffep127F;

// 64 zeros, 64 times all ones, 64 zeros: windows into it mask the lanes below or from a key on.
struct MaskTable {
  std::uint32_t lanes[3 * kBlock] = {};

  constexpr MaskTable() {
    for (int i = 0; i < kBlock; ++i) {
      lanes[kBlock + i] = 0xffffffffU;
    }
  }
};

constexpr MaskTable kMasks;

// The keys of one block that a row sees: [first, first_end) and [second, second_end), of 0 to 64.
struct BlockKeys {
  int first;
  int first_end;
  int second;
  int second_end;
};

inline int clip(std::int64_t position, std::int64_t block_begin) {
  const std::int64_t at = position - block_begin;
  return at < 0 ? 0 : at > kBlock ? kBlock : static_cast<int>(at);
}

inline BlockKeys keys_in_block(const SeenKeys& seen, std::int64_t block_begin) {
  return {
      clip(seen.keep_begin, block_begin),
      clip(seen.keep_end, block_begin),
      clip(seen.begin, block_begin),
      clip(seen.end, block_begin),
  };
}

inline bool has_first(const BlockKeys& keys) {
  return keys.first < keys.first_end;
}

inline bool has_second(const BlockKeys& keys) {
  return keys.second < keys.second_end;
}

// Lanes of vector v whose keys lie in [from, to).
inline U32x16 range_mask(int v, int from, int to) {
  const std::uint32_t* not_before = kMasks.lanes + kBlock - from + v * kVector;
  const std::uint32_t* before = kMasks.lanes + 2 * kBlock - to + v * kVector;
  return bit_and(load_u32(not_before), load_u32(before));
}

inline U32x16 seen_mask(const BlockKeys& keys, int v) {
  return bit_or(
      range_mask(v, keys.first, keys.first_end), range_mask(v, keys.second, keys.second_end)
  );
}

// Views into the floats of a state, see attend_bodies.h.
struct State {
  float* values;
  float* sums;
  float* maxima;
  int stride;  // Of values.
};

inline State state_of(const AttendShape& shape, const AttendTile& tile, float* floats) {
  const int stride = shape.value_chunks * kVector;
  float* sums = floats + tile.count * stride;
  return {floats, sums, sums + tile.count * kVector, stride};
}

inline void scale_row(float* row, int floats, F32x16 factor) {
  for (int i = 0; i < floats; i += kVector) {
    store(row + i, mul(load(row + i), factor));
  }
}

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

// Adds the values of the keys that each of `rows` rows sees.
template <bool kBf16>
void add_seen_values(const ValueTask& task, const BlockKeys* keys, int rows) {
  // The keys that all rows see in one range are added together, a row's others before and after
  // them.
  int from = 0;
  int to = rows > 1 ? kBlock : 0;
  for (int r = 0; r < rows; ++r) {
    const bool one_range = has_first(keys[r]) != has_second(keys[r]);
    const int begin = has_first(keys[r]) ? keys[r].first : keys[r].second;
    const int end = has_first(keys[r]) ? keys[r].first_end : keys[r].second_end;
    from = begin > from ? begin : from;
    to = !one_range ? 0 : end < to ? end : to;
  }
  const bool together = from < to;
  const auto row_task = [&](int r) {
    ValueTask single = task;
    single.weights += r * kBlock;
    single.sums += r * task.stride;
    return single;
  };
  for (int r = 0; r < rows; ++r) {
    const int end = together ? from : kBlock;
    const auto limit = [&](int key) { return key < end ? key : end; };
    add_values<kBf16>(row_task(r), 1, keys[r].first, limit(keys[r].first_end));
    add_values<kBf16>(row_task(r), 1, keys[r].second, limit(keys[r].second_end));
  }
  if (!together) {
    return;
  }
  add_values<kBf16>(task, rows, from, to);
  for (int r = 0; r < rows; ++r) {
    const int end = has_first(keys[r]) ? keys[r].first_end : keys[r].second_end;
    add_values<kBf16>(row_task(r), 1, to, end);
  }
}

// What one block needs beside its rows.
struct Block {
  std::int64_t begin;  // Position of its first key.
  const std::byte* keys;
  const std::byte* values;
  const float* queries;
  float* scores;
};

// Rows [first, first + rows) of the tile, all of which see some key of the block.
template <bool kBf16>
void attend_rows(
    const AttendShape& shape,
    const Block& block,
    const BlockKeys* keys,
    const State& state,
    int first,
    int rows
) {
  const ScoreTask scores{
      block.queries + first * shape.padded_head_dim,
      shape.padded_head_dim,
      block.keys,
      shape.padded_head_dim,
      block.scores,
  };
  score_rows<kBf16>(scores, rows);
  for (int r = 0; r < rows; ++r) {
    soften(shape, keys[r], state, first + r, block.scores + r * kBlock);
  }
  const ValueTask values{
      block.scores,
      block.values,
      shape.value_chunks,
      state.values + first * state.stride,
      state.stride,
  };
  add_seen_values<kBf16>(values, keys, rows);
}

inline bool sees(const BlockKeys& keys) {
  return has_first(keys) || has_second(keys);
}

// Rows [first, first + rows) of the tile; runs of rows that see the block go together.
template <bool kBf16>
void attend_group(
    const AttendShape& shape,
    const AttendTile& tile,
    const Block& block,
    const State& state,
    int first,
    int rows
) {
  BlockKeys keys[kMaxRows];
  for (int r = 0; r < rows; ++r) {
    const int row = (tile.first + first + r) / shape.group;
    keys[r] = keys_in_block(tile.seen[row], block.begin);
  }
  int begin = 0;
  while (begin < rows) {
    int end = begin;
    while (end < rows && sees(keys[end])) {
      ++end;
    }
    if (end > begin) {
      attend_rows<kBf16>(shape, block, keys + begin, state, first + begin, end - begin);
    }
    begin = end + 1;
  }
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

void load_queries(const AttendShape& shape, const AttendTile& tile, float* scratch) {
  for (int j = 0; j < tile.count; ++j) {
    const int flat = tile.first + j;
    const int head = tile.kv_head * shape.group + flat % shape.group;
    const float* from =
        tile.q.data + flat / shape.group * tile.q.row_stride + head * tile.q.head_stride;
    float* to = scratch + j * shape.padded_head_dim;
    for (int d = 0; d < shape.head_dim; ++d) {
      to[d] = from[d] * shape.scale;
    }
    for (int d = shape.head_dim; d < shape.padded_head_dim; ++d) {
      to[d] = 0.0F;
    }
  }
}

void attend_chunk(
    const AttendShape& shape,
    const AttendTile& tile,
    const AttendChunk& chunk,
    float* scratch,
    float* floats
) {
  clear(shape, tile, floats);
  const State state = state_of(shape, tile, floats);
  const int groups = (tile.count + kMaxRows - 1) / kMaxRows;
  for (int i = 0; i < chunk.count; ++i) {
    const std::byte* keys = chunk.pages[i].data + tile.kv_head * shape.head_bytes;
    const Block block{
        chunk.pages[i].index * kBlock,
        keys,
        keys + shape.key_bytes,
        scratch,
        scratch + tile.count * shape.padded_head_dim,
    };
    for (int g = 0; g < groups; ++g) {
      // Groups of nearly equal size.
      const int first = g * tile.count / groups;
      const int rows = (g + 1) * tile.count / groups - first;
      if (shape.bf16) {
        attend_group<true>(shape, tile, block, state, first, rows);
      } else {
        attend_group<false>(shape, tile, block, state, first, rows);
      }
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
