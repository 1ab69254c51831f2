// SPDX-License-Identifier: Apache-2.0
#pragma once

// The values of a block whose keys hold them (KvShape::values_in_keys), in the order that products
// read. Keys lie by element and values by key, so this is a transposition. kv_pages.h has both
// orders. The bits of a result are those with stored values.

#include "saker/kernels/cpu/attention/blocks.h"
#include "saker/kernels/cpu/dispatch/attend_bodies.h"
#include "saker/kernels/cpu/simd/vec.h"
#if defined(SAKER_TRANSPOSES)
#include "saker/kernels/cpu/simd/transpose_lanes.h"
#endif

#include <cstddef>
#include <cstdint>

namespace saker::kernels::SAKER_ISA {

// Words of a block's values in bf16.
inline int turned_words(const AttendShape& shape) {
  return shape.value_chunks * kVector * kBlock / 2;
}

// One chunk of bf16: `keys` begins at its first element. Elements from `count` on become 0.
inline void turn_bf16_chunk(const std::uint32_t* keys, int count, std::uint32_t* to) {
  for (int d = 0; d < kVector; d += 2) {
    const std::uint32_t* row = keys + d / 2 * kBlock;
    const std::uint32_t first = d < count ? 0xffffU : 0U;
    const std::uint32_t second = d + 1 < count ? 0xffffU : 0U;
    for (int key = 0; key < kBlock; key += 2) {
      const std::uint32_t even = d < count ? row[key] : 0U;
      const std::uint32_t odd = d < count ? row[key + 1] : 0U;
      std::uint32_t* words = to + key / 2 * kVector + d;
      words[0] = (even & first) | (odd & first) << 16;
      words[1] = (even >> 16 & second) | (odd >> 16 & second) << 16;
    }
  }
}

// As above in float32.
inline void turn_float_chunk(const float* keys, int count, float* to) {
  for (int d = 0; d < kVector; ++d) {
    for (int key = 0; key < kBlock; ++key) {
      to[key * kVector + d] = d < count ? keys[d * kBlock + key] : 0.0F;
    }
  }
}

#if defined(SAKER_TRANSPOSES)
// Two whole chunks of bf16.
inline void turn_bf16_chunks(const std::uint32_t* keys, std::uint32_t* to) {
  // Lanes of `even` and `odd` in turns.
  alignas(64) static constexpr std::uint32_t kLow[kVector] = {
      0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
  };
  alignas(64) static constexpr std::uint32_t kHigh[kVector] = {
      8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
  };
  constexpr int kChunkWords = kBlock / 2 * kVector;
  const U32x16 low = load_u32(kLow);
  const U32x16 high = load_u32(kHigh);
  for (int key = 0; key < kBlock; key += kVector) {
    U32x16 lines[kVector];  // By pair of elements; by key once transposed.
    for (int i = 0; i < kVector; ++i) {
      lines[i] = load_u32(keys + i * kBlock + key);
    }
    transpose(lines);
    for (int i = 0; i < kVector; i += 2) {
      const U32x16 even =
          bit_or(bit_and(lines[i], broadcast_u32(0xffffU)), shift_left<16>(lines[i + 1]));
      const U32x16 odd =
          bit_or(shift_right<16>(lines[i]), bit_and(lines[i + 1], broadcast_u32(0xffff0000U)));
      std::uint32_t* at = to + (key + i) / 2 * kVector;
      store_u32(at, permute_two(even, low, odd));
      store_u32(at + kChunkWords, permute_two(even, high, odd));
    }
  }
}

// One whole chunk of float32, as bits.
inline void turn_float_words(const std::uint32_t* keys, std::uint32_t* to) {
  for (int key = 0; key < kBlock; key += kVector) {
    U32x16 lines[kVector];
    for (int i = 0; i < kVector; ++i) {
      lines[i] = load_u32(keys + i * kBlock + key);
    }
    transpose(lines);
    for (int i = 0; i < kVector; ++i) {
      store_u32(to + (key + i) * kVector, lines[i]);
    }
  }
}
#endif

// Writes the block's values to `to`.
inline void turn_values(const AttendShape& shape, const std::byte* block, std::uint32_t* to) {
  const auto* keys = reinterpret_cast<const std::uint32_t*>(block);
  const int chunk_rows = shape.bf16 ? kVector / 2 : kVector;  // Rows of 64 words.
  const int chunk_words = chunk_rows * kBlock;
  int chunk = 0;
#if defined(SAKER_TRANSPOSES)
  const int whole = shape.value_head_dim / kVector;
  if (shape.bf16) {
    for (; chunk + 2 <= whole; chunk += 2) {
      turn_bf16_chunks(keys + chunk * chunk_words, to + chunk * chunk_words);
    }
  } else {
    for (; chunk < whole; ++chunk) {
      turn_float_words(keys + chunk * chunk_words, to + chunk * chunk_words);
    }
  }
#endif
  for (; chunk < shape.value_chunks; ++chunk) {
    const int left = shape.value_head_dim - chunk * kVector;
    const int count = left < kVector ? left : kVector;
    const std::uint32_t* from = keys + chunk * chunk_words;
    if (shape.bf16) {
      turn_bf16_chunk(from, count, to + chunk * chunk_words);
    } else {
      turn_float_chunk(
          reinterpret_cast<const float*>(from),
          count,
          reinterpret_cast<float*>(to + chunk * chunk_words)
      );
    }
  }
}

}  // namespace saker::kernels::SAKER_ISA
