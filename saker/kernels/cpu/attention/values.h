// SPDX-License-Identifier: Apache-2.0
#pragma once

// Weights of up to six query rows times the values of a block.

#include "saker/kernels/cpu/attention/blocks.h"
#include "saker/kernels/cpu/attention/pair_words.h"
#include "saker/kernels/cpu/simd/vec.h"

#include <cstddef>
#include <cstdint>

namespace saker::kernels::SAKER_ISA {

// Weights [rows][64] of the block (or [rows][32] pairs of bf16) times its values, added to floats
// [rows][stride].
template <typename Weight>
struct ValueTask {
  const Weight* weights;
  const std::byte* values;
  int chunks;
  float* sums;
  int stride;
  std::ptrdiff_t ahead = 0;  // Byte distance from the values to the memory to prefetch.
};

// The pairs of a chunk in a bf16 page that hold a key.
[[gnu::always_inline]] inline const std::uint32_t* pairs_of(
    const ValueTask<float>& task, int chunk, int key
) {
  constexpr int kChunkPairs = kBlock * kVector / 2;
  return reinterpret_cast<const std::uint32_t*>(task.values) + chunk * kChunkPairs +
         key / 2 * kVector;
}

// Adds one key of a bf16 page: the second of its pairs, or the first.
template <bool kSecond, int kRows, int kChunks>
[[gnu::always_inline]] inline void add_bf16_key(
    const ValueTask<float>& task, int chunk, int key, F32x16 (&acc)[kRows][kChunks]
) {
  add_products(acc, task.weights + key, kBlock, [&](int c) {
    const U32x16 pairs = load_u32(pairs_of(task, chunk + c, key));
    return kSecond ? odd_bf16(pairs) : even_bf16(pairs);
  });
}

// Adds kChunks chunks of 16 value elements from `chunk` on, for keys [from, to).
template <bool kBf16, int kRows, int kChunks>
inline void add_value_chunks(const ValueTask<float>& task, int chunk, int from, int to) {
  F32x16 acc[kRows][kChunks];
  const auto each_sum = [&](const auto& function) {
    unroll<kRows>([&](auto r) {
      unroll<kChunks>([&](auto c) {
        float* sums = task.sums + r.kValue * task.stride + (chunk + c.kValue) * kVector;
        function(sums, acc[r.kValue][c.kValue]);
      });
    });
  };
  each_sum([](const float* sums, F32x16& sum) { sum = load(sums); });
  if constexpr (kBf16) {
    int key = from;
    if (key % 2 != 0) {
      add_bf16_key<true>(task, chunk, key++, acc);
    }
    for (; key + 1 < to; key += 2) {
      unroll<kChunks>([&](auto c) {
        prefetch(reinterpret_cast<const std::byte*>(pairs_of(task, chunk + kChunks + c.kValue, key))
        );
      });
      add_bf16_key<false>(task, chunk, key, acc);
      add_bf16_key<true>(task, chunk, key + 1, acc);
    }
    if (key < to) {
      add_bf16_key<false>(task, chunk, key, acc);
    }
  } else {
    constexpr int kChunkElements = kBlock * kVector;
    const auto* values = reinterpret_cast<const float*>(task.values);
    for (int key = from; key < to; ++key) {
      add_products(acc, task.weights + key, kBlock, [&](int c) {
        return load(values + (chunk + c) * kChunkElements + key * kVector);
      });
    }
  }
  each_sum([](float* sums, const F32x16& sum) { store(sums, sum); });
}

// Chunks whose sums for `rows` rows stay in registers.
constexpr int chunks_for(int rows) {
  return kWideRegisters || rows == 1 ? 4 : rows == 2 ? 2 : 1;
}

template <bool kBf16, int kRows>
inline void add_value_block(const ValueTask<float>& task, int from, int to) {
  constexpr int kChunks = chunks_for(kRows);
  int chunk = 0;
  for (; chunk + kChunks <= task.chunks; chunk += kChunks) {
    add_value_chunks<kBf16, kRows, kChunks>(task, chunk, from, to);
  }
  for (; chunk < task.chunks; ++chunk) {
    add_value_chunks<kBf16, kRows, 1>(task, chunk, from, to);
  }
}

template <bool kBf16>
inline void add_values(const ValueTask<float>& task, int rows, int from, int to) {
  if (from >= to) {
    return;
  }
  switch (rows) {
    case 1:
      return add_value_block<kBf16, 1>(task, from, to);
    case 2:
      return add_value_block<kBf16, 2>(task, from, to);
    case 3:
      return add_value_block<kBf16, 3>(task, from, to);
    case 4:
      return add_value_block<kBf16, 4>(task, from, to);
    case 5:
      return add_value_block<kBf16, 5>(task, from, to);
    default:
      return add_value_block<kBf16, 6>(task, from, to);
  }
}

// As above, for words that hold or encode pairs. Takes all keys of the block; unseen ones have a
// weight of zero. Ends::start(sums, row) gives the start value of sixteen sums, Ends::finish(sums,
// row, products) stores them.
template <typename Words, int kRows, int kChunks, typename Ends>
inline void add_value_pairs(const ValueTask<std::uint32_t>& task, int chunk, const Ends& ends) {
  constexpr int kWords = kBlock / 2 / Words::kPairs;
  typename Words::Sum acc[kRows][kChunks];
  const auto each_sum = [&](const auto& function) {
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
      for (int c = 0; c < kChunks; ++c) {
        function(r, task.sums + r * task.stride + (chunk + c) * kVector, acc[r][c]);
      }
    }
  };
  each_sum([&](int r, const float* sums, auto& sum) { sum = ends.start(sums, r); });
  const auto* values = reinterpret_cast<const std::uint32_t*>(task.values);
  const std::uint32_t* weights = task.weights;
  for (int word = 0; word < kWords; ++word, weights += Words::kPairs) {
    U32x16 loaded[kChunks];
#pragma GCC unroll 8
    for (int c = 0; c < kChunks; ++c) {
      // Prefetch in memory order, though the chunks are read side by side.
      const std::uint32_t* line = values + (chunk * kWords + word * kChunks + c) * kVector;
      prefetch(reinterpret_cast<const std::byte*>(line) + task.ahead);
      loaded[c] = load_u32(values + ((chunk + c) * kWords + word) * kVector);
    }
    add_word_products<Words>(acc, loaded, weights, kBlock / 2);
  }
  each_sum([&](int r, float* sums, const auto& sum) { ends.finish(sums, r, sum); });
}

template <typename Words, int kRows, typename Ends>
inline void add_value_pairs(const ValueTask<std::uint32_t>& task, const Ends& ends) {
  constexpr int kChunks = chunks_for(kRows);
  int chunk = 0;
  for (; chunk + kChunks <= task.chunks; chunk += kChunks) {
    add_value_pairs<Words, kRows, kChunks>(task, chunk, ends);
  }
  for (; chunk < task.chunks; ++chunk) {
    add_value_pairs<Words, kRows, 1>(task, chunk, ends);
  }
}

}  // namespace saker::kernels::SAKER_ISA
