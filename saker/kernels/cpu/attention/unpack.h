// SPDX-License-Identifier: Apache-2.0
#pragma once

// Unpacks the codes of a block to bf16 pairs, in the layout of a page that is not quantized. Small
// integers are exact in bf16, so nothing is rounded. code_block.h has the layout of codes.

#include "saker/kernels/cpu/attention/blocks.h"
#include "saker/kernels/cpu/attention/pair_words.h"
#include "saker/kernels/cpu/dispatch/attend_bodies.h"
#include "saker/kernels/cpu/simd/vec.h"

#include <cstddef>
#include <cstdint>

namespace saker::kernels::SAKER_ISA {

// [rows][kLaneCount] words -> [rows * pairs of a word][kLaneCount] pairs.
template <typename Words, int kLaneCount>
void unpack_rows(const std::uint32_t* words, int rows, std::uint32_t* pairs) {
  constexpr int kPairs = Words::kPairs;
  for (int row = 0; row < rows; ++row, words += kLaneCount, pairs += kPairs * kLaneCount) {
#pragma GCC unroll 4
    for (int lane = 0; lane < kLaneCount; lane += kVector) {
      prefetch(reinterpret_cast<const std::byte*>(words + lane) + kPrefetchBytes);
      const U32x16 word = load_u32(words + lane);
      each_index<kPairs>([&]<int pair>() {
        store_u32(pairs + pair * kLaneCount + lane, Words::template pair<pair>(word));
      });
    }
  }
}

inline void unpack_keys(const CodeBlock& codes, const std::byte* from, std::uint32_t* pairs) {
  const auto* words = reinterpret_cast<const std::uint32_t*>(from);
  const int rows = (codes.dim + codes.codes_per_word() - 1) / codes.codes_per_word();
  with_code_words<CodeWords>(codes.bits, [&]<typename Words>() {
    unpack_rows<Words, kBlock>(words, rows, pairs);
  });
}

inline void unpack_values(const CodeBlock& codes, const std::byte* from, std::uint32_t* pairs) {
  const auto* words = reinterpret_cast<const std::uint32_t*>(from);
  const int chunks = (codes.dim + kVector - 1) / kVector;
  const int rows = chunks * kBlock / codes.codes_per_word();
  with_code_words<CodeWords>(codes.bits, [&]<typename Words>() {
    unpack_rows<Words, kVector>(words, rows, pairs);
  });
}

}  // namespace saker::kernels::SAKER_ISA
