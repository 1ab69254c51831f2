// SPDX-License-Identifier: Apache-2.0
#pragma once

// The keys of a block that a row sees, and the state of its online softmax.

#include "saker/kernels/cpu/attention/blocks.h"
#include "saker/kernels/cpu/dispatch/attend_bodies.h"
#include "saker/kernels/cpu/simd/vec.h"

#include <cstdint>

namespace saker::kernels::SAKER_ISA {

// 64 zeros, 64 all-ones words, 64 zeros. Windows into it mask the lanes before or from a key on.
struct MaskTable {
  std::uint32_t lanes[3 * kBlock] = {};

  constexpr MaskTable() {
    for (int i = 0; i < kBlock; ++i) {
      lanes[kBlock + i] = 0xffffffffU;
    }
  }
};

inline constexpr MaskTable kMasks;

// The keys of one block that a row sees: [first, first_end) and [second, second_end), from 0 to 64.
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

// A mask of the lanes of vector v whose keys lie in [from, to).
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

// Lanes of vector v, zero where the row does not see the key.
inline F32x16 seen_lanes(const BlockKeys& keys, int v, F32x16 lanes) {
  return as_float(bit_and(seen_mask(keys, v), as_u32(lanes)));
}

inline bool sees(const BlockKeys& keys) {
  return has_first(keys) || has_second(keys);
}

inline bool sees_whole_block(const BlockKeys& keys) {
  return keys.second == 0 && keys.second_end == kBlock;
}

// Views into the floats of one KV head's state, see state_floats.
struct State {
  float* values;
  float* sums;
  float* maxima;
  int stride;  // Floats from a row's values to the next.
};

// The state of KV head number `head` of the tile.
inline State state_of(const AttendShape& shape, const AttendTile& tile, int head, float* floats) {
  const int stride = shape.value_chunks * kVector;
  floats += head * state_floats(shape, tile.count);
  float* sums = floats + tile.count * stride;
  return {floats, sums, sums + tile.count * kVector, stride};
}

inline void scale_row(float* row, int floats, F32x16 factor) {
  for (int i = 0; i < floats; i += kVector) {
    store(row + i, mul(load(row + i), factor));
  }
}

}  // namespace saker::kernels::SAKER_ISA
