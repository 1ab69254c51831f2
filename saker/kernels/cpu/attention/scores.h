// SPDX-License-Identifier: Apache-2.0
#pragma once

// q . k of up to six query rows and the 64 keys of a block.

#include "saker/kernels/cpu/attention/blocks.h"
#include "saker/kernels/cpu/attention/pair_words.h"
#include "saker/kernels/cpu/simd/vec.h"

#include <cstddef>
#include <cstdint>

namespace saker::kernels::SAKER_ISA {

// Cache lines that hold one pair of elements for all keys of a block.
inline constexpr int kLinesOfPairs = 4;

// Query rows [rows][stride], floats or pairs of bf16, times keys of one head in a page's layout ->
// scores [rows][64].
template <typename Query>
struct ScoreTask {
  const Query* q;
  int stride;
  const std::byte* keys;
  int head_dim;  // Even for bf16.
  float* scores;
  std::ptrdiff_t ahead = 0;  // Byte distance from the keys to the memory to prefetch.
};

// Prefetches the pairs that the loop over a block reads kPrefetchBytes later.
[[gnu::always_inline]] inline void prefetch_ahead(const std::uint32_t* pairs) {
  const auto* ahead = reinterpret_cast<const std::byte*>(pairs) + kPrefetchBytes;
#pragma GCC unroll 4
  for (int line = 0; line < kLinesOfPairs; ++line) {
    prefetch(ahead + line * 64);
  }
}

// Scores of kVectors * 16 keys from `key` on.
template <bool kBf16, int kRows, int kVectors>
inline void score_keys(const ScoreTask<float>& task, int key) {
  F32x16 acc[kRows][kVectors];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      acc[r][v] = zero();
    }
  }
  const float* q = task.q;
  if constexpr (kBf16) {
    const auto* pairs = reinterpret_cast<const std::uint32_t*>(task.keys) + key;
    for (int d = 0; d < task.head_dim; d += 2, pairs += kBlock, q += 2) {
      if (key == 0) {
        prefetch_ahead(pairs);
      }
      add_products(acc, q, task.stride, [&](int v) {
        return even_bf16(load_u32(pairs + v * kVector));
      });
      if constexpr (!kWideRegisters) {
        // Load again: keeping the raw pairs in registers would spill sums to memory.
        asm volatile("" : "+r"(pairs));
      }
      add_products(acc, q + 1, task.stride, [&](int v) {
        return odd_bf16(load_u32(pairs + v * kVector));
      });
    }
  } else {
    const auto* elements = reinterpret_cast<const float*>(task.keys) + key;
    for (int d = 0; d < task.head_dim; ++d, elements += kBlock, ++q) {
      add_products(acc, q, task.stride, [&](int v) { return load(elements + v * kVector); });
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      store(task.scores + r * kBlock + key + v * kVector, acc[r][v]);
    }
  }
}

template <bool kBf16, int kRows>
inline void score_block(const ScoreTask<float>& task) {
  constexpr int kVectors = kWideRegisters || kRows == 1 ? 4 : 1;
  for (int key = 0; key < kBlock; key += kVectors * kVector) {
    score_keys<kBf16, kRows, kVectors>(task, key);
  }
}

template <bool kBf16>
inline void score_rows(const ScoreTask<float>& task, int rows) {
  switch (rows) {
    case 1:
      return score_block<kBf16, 1>(task);
    case 2: {
      // Memory decides here: two passes over the page are faster than one that skips half of each
      // line's neighbours.
      ScoreTask<float> second = task;
      second.q += task.stride;
      second.scores += kBlock;
      score_block<kBf16, 1>(task);
      return score_block<kBf16, 1>(second);
    }
    case 3:
      return score_block<kBf16, 3>(task);
    case 4:
      return score_block<kBf16, 4>(task);
    case 5:
      return score_block<kBf16, 5>(task);
    default:
      return score_block<kBf16, 6>(task);
  }
}

// As above, for words that hold or encode pairs, with one product per pair. Queries are padded with
// zeros to whole words. finish(sums, key) gets the sums of kRows rows and kVectors vectors of keys,
// from `key` on.
template <typename Words, int kRows, int kVectors, typename Finish>
inline void score_key_pairs(const ScoreTask<std::uint32_t>& task, int key, const Finish& finish) {
  typename Words::Sum acc[kRows][kVectors] = {};
  const auto* keys = reinterpret_cast<const std::uint32_t*>(task.keys) + key;
  const std::uint32_t* q = task.q;
  for (int pair = 0; pair < task.head_dim / 2; pair += Words::kPairs, keys += kBlock) {
    U32x16 loaded[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      prefetch(reinterpret_cast<const std::byte*>(keys + v * kVector) + task.ahead);
      loaded[v] = load_u32(keys + v * kVector);
    }
    add_word_products<Words>(acc, loaded, q, task.stride);
    q += Words::kPairs;
  }
  finish(acc, key);
}

template <typename Words, int kRows, typename Finish>
inline void score_pairs(const ScoreTask<std::uint32_t>& task, const Finish& finish) {
  constexpr int kVectors = kWideRegisters || kRows == 1 ? 4 : 1;
  for (int key = 0; key < kBlock; key += kVectors * kVector) {
    score_key_pairs<Words, kRows, kVectors>(task, key, finish);
  }
}

}  // namespace saker::kernels::SAKER_ISA
