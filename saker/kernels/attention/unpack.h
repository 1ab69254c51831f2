// SPDX-License-Identifier: Apache-2.0
#pragma once

// The codes of a block as bf16 pairs, where a page that is not quantized would hold its elements.
// Small integers are bf16 numbers, so nothing is rounded. code_block.h says how codes lie.

#include "saker/kernels/attention/blocks.h"
#include "saker/kernels/attention/bodies.h"
#include "saker/kernels/cpu/vec.h"

#include <cstddef>
#include <cstdint>

namespace saker::kernels::SAKER_ISA {

// What is added to codes of `bits` bits where they are unpacked, and the middle of what that gives.
constexpr float code_offset(int bits) {
  return bits == 4 ? 16.0F : 0.0F;
}

constexpr float code_middle(int bits) {
  return code_offset(bits) + static_cast<float>((1 << bits) - 1) / 2;
}

// Pair number kPair of each word. Codes of 4 bits become the first bits behind the leading one of
// 16 + code: two instructions for 32 codes.
template <int kBits, int kPair>
[[gnu::always_inline]] inline U32x16 code_pair(U32x16 words) {
  if constexpr (kBits == 4) {
    constexpr int kFirst = 3;  // Of the four bits among the seven of a bf16.
    const U32x16 mask = broadcast_u32(0x00780078U);
    const U32x16 sixteen = broadcast_u32(0x41804180U);
    if constexpr (4 * kPair < kFirst) {
      return bit_or(bit_and(shift_left<kFirst - 4 * kPair>(words), mask), sixteen);
    } else {
      return bit_or(bit_and(shift_right<4 * kPair - kFirst>(words), mask), sixteen);
    }
  } else {
    static_assert(kBits == 8);
    return bf16_of_bytes<kPair>(words);
  }
}

// [rows][kLaneCount] words -> [rows * pairs of a word][kLaneCount] pairs.
template <int kBits, int kLaneCount>
void unpack_rows(const std::uint32_t* words, int rows, std::uint32_t* pairs) {
  constexpr int kPairs = 16 / kBits;
  for (int row = 0; row < rows; ++row, words += kLaneCount, pairs += kPairs * kLaneCount) {
#pragma GCC unroll 4
    for (int lane = 0; lane < kLaneCount; lane += kVector) {
      prefetch(reinterpret_cast<const std::byte*>(words + lane) + kPrefetchBytes);
      const U32x16 word = load_u32(words + lane);
      std::uint32_t* to = pairs + lane;
      store_u32(to, code_pair<kBits, 0>(word));
      store_u32(to + kLaneCount, code_pair<kBits, 1>(word));
      if constexpr (kPairs == 4) {
        store_u32(to + 2 * kLaneCount, code_pair<kBits, 2>(word));
        store_u32(to + 3 * kLaneCount, code_pair<kBits, 3>(word));
      }
    }
  }
}

inline void unpack_keys(const CodeBlock& codes, const std::byte* from, std::uint32_t* pairs) {
  const auto* words = reinterpret_cast<const std::uint32_t*>(from);
  const int rows = (codes.dim + codes.codes_per_word() - 1) / codes.codes_per_word();
  if (codes.bits == 4) {
    unpack_rows<4, kBlock>(words, rows, pairs);
  } else {
    unpack_rows<8, kBlock>(words, rows, pairs);
  }
}

inline void unpack_values(const CodeBlock& codes, const std::byte* from, std::uint32_t* pairs) {
  const auto* words = reinterpret_cast<const std::uint32_t*>(from);
  const int chunks = (codes.dim + kVector - 1) / kVector;
  const int rows = chunks * kBlock / codes.codes_per_word();
  if (codes.bits == 4) {
    unpack_rows<4, kVector>(words, rows, pairs);
  } else {
    unpack_rows<8, kVector>(words, rows, pairs);
  }
}

// The scales and biases of sixteen keys' group g.
struct TermLanes {
  F32x16 scale;
  F32x16 bias;
};

inline TermLanes load_terms(const CodeBlock& codes, const std::byte* from, int g, int vector) {
  const std::byte* scales = from + codes.code_bytes;
  const int at = g * kBlock + vector * kVector;
  const auto lanes = [&](const std::byte* terms) {
    return codes.bf16 ? load_bf16(reinterpret_cast<const std::uint16_t*>(terms) + at)
                      : load(reinterpret_cast<const float*>(terms) + at);
  };
  return {lanes(scales), lanes(scales + codes.term_bytes)};
}

}  // namespace saker::kernels::SAKER_ISA
