// SPDX-License-Identifier: Apache-2.0
#pragma once

// Integers of 16 bits times codes of a page on AMX's tiles: codes are unsigned bytes there, an
// integer an upper and a lower signed byte, whose products are added up apart.

#include "saker/kernels/amx/bytes.h"
#include "saker/kernels/amx/tile.h"
#include "saker/kernels/attention/int16_rounding.h"

namespace saker::kernels::SAKER_ISA {

inline constexpr int kTileElements = 4 * kTilePairs;  // Bytes of a row of a tile.

// As codes lie in words (see code_block.h): the second half's between the first half's.
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

// Where a tile of codes lies, line by line.
struct CodeLines {
  const std::byte* at;
  std::ptrdiff_t stride;
};

// Those of words that lie in lines of sixteen, `stride` bytes apart: 8 bits as tiles read them.
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

// Takes `count` products in turn: multiply(Index<turn>, i, sums) leaves number i in `sums` by way
// of the tiles 2 * turn and 2 * turn + 1, add(i, sums) takes it from there while tiles are at work
// on the next one.
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

// What stands left: upper and lower bytes of rows that lie `stride` bytes apart.
[[gnu::always_inline]] inline void load_bytes(const std::byte* bytes, std::ptrdiff_t stride) {
  tile_load<kLeft>(bytes, stride);
  tile_load<kLeft + 1>(bytes + kTileElements, stride);
}

// What stands left times sixteen elements or keys.
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
