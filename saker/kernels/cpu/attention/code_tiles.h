// SPDX-License-Identifier: Apache-2.0
#pragma once

// Products of int16 and a page's codes on AMX tiles. Codes are unsigned bytes there. An integer is
// an upper and a lower signed byte, whose products are summed separately.

#include "saker/kernels/cpu/amx/bytes.h"
#include "saker/kernels/cpu/amx/tile.h"
#include "saker/kernels/cpu/attention/int16_rounding.h"

namespace saker::kernels::SAKER_ISA {

inline constexpr int kTileElements = 4 * kTilePairs;  // Bytes of a tile row.

// The order of codes in words (see code_block.h): the second half's lie between the first half's.
template <int kBits>
struct WordOrder {
  static constexpr int from(int i) {
    constexpr int kCodes = 32 / kBits;
    return i / kCodes * kCodes + i % kCodes / 2 + i % 2 * (kCodes / 2);
  }
};

// A row's integers as tiles read them: kTileElements upper bytes, then as many lower ones.
template <int kBits>
[[gnu::always_inline]] inline void store_byte_rows(
    const BlockIntegers& integers, std::uint32_t* to
) {
  auto* bytes = reinterpret_cast<std::byte*>(to);
  store_bytes_apart<WordOrder<kBits>>(integers, bytes, bytes + kTileElements);
}

// A tile of codes in memory: its lines are `stride` bytes apart.
struct CodeLines {
  const std::byte* at;
  std::ptrdiff_t stride;
};

// The tile of codes in words, whose lines of sixteen lie `stride` bytes apart. 8-bit codes already
// lie as tiles read them.
template <int kBits>
[[gnu::always_inline]] inline CodeLines code_lines(
    const std::byte* words, std::ptrdiff_t stride, std::byte* scratch
) {
  if constexpr (kBits == 8) {
    return {words, stride};
  } else {
    auto* to = reinterpret_cast<std::uint32_t*>(scratch);
#pragma GCC unroll 8
    for (int line = 0; line < kTilePairs / 2; ++line, words += stride, to += 2 * kVector) {
      store_nibbles(load_u32(reinterpret_cast<const std::uint32_t*>(words)), to);
    }
    return {scratch, kTileStride};
  }
}

// Computes `count` products, alternating between two pairs of tiles. The call multiply(Index<turn>,
// i, sums) leaves product i in `sums`, by way of tiles 2 * turn and 2 * turn + 1. Then add(i, sums)
// reads it while the tiles work on the next product.
template <typename Multiply, typename Add>
[[gnu::always_inline]] inline void take_turns(int count, const Multiply& multiply, const Add& add) {
  alignas(64) ByteSums sums[2][2];
  for (int i = 0; i < count; i += 2) {
    multiply(Index<0>(), i, sums[0]);
    if (i > 0) {
      add(i - 1, sums[1]);
    }
    if (i + 1 < count) {
      multiply(Index<1>(), i + 1, sums[1]);
    }
    add(i, sums[0]);
  }
  if (count % 2 == 0) {
    add(count - 1, sums[1]);
  }
}

// Loads the left operand: upper and lower bytes of rows that lie `stride` bytes apart.
[[gnu::always_inline]] inline void load_bytes(const std::byte* bytes, std::ptrdiff_t stride) {
  tile_load<kLeft>(bytes, stride);
  tile_load<kLeft + 1>(bytes + kTileElements, stride);
}

// Multiplies the left operand by sixteen elements or keys.
template <int turn>
[[gnu::always_inline]] inline void multiply_bytes(const CodeLines& codes, ByteSums (&sums)[2]) {
  constexpr int kUpper = 2 * turn;
  constexpr int kLower = kUpper + 1;
  tile_clear<kUpper>();
  tile_clear<kLower>();
  tile_load<kRight + turn>(codes.at, codes.stride);
  tile_add_byte_products<kUpper, kLeft, kRight + turn>();
  tile_add_byte_products<kLower, kLeft + 1, kRight + turn>();
  tile_store<kUpper>(sums[0], kTileStride);
  tile_store<kLower>(sums[1], kTileStride);
}

}  // namespace saker::kernels::SAKER_ISA
