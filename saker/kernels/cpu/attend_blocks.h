// SPDX-License-Identifier: Apache-2.0
#pragma once

// The inner products of attention over one block of 64 keys, for up to six query rows at once.
//
// Each row's and each key's chain of additions is the same for every number of rows; only the
// registers are shared.

#include "saker/kernels/cpu/vec.h"

#include <cstddef>
#include <cstdint>

namespace saker::kernels::SAKER_ISA {

inline constexpr int kBlock = 64;
inline constexpr int kVector = 16;
// Whether one register holds 16 lanes: then there are 32 of them, else 16 of 8 lanes or less.
inline constexpr bool kWideRegisters = alignof(F32x16) == 64;
// The most rows whose sums, with what they are multiplied by, stay in registers.
inline constexpr int kMaxRows = kWideRegisters ? 6 : 5;

// How far ahead of the loads memory is asked for, in bytes: what 100 ns of latency need at 20 GB/s.
inline constexpr int kPrefetchBytes = 2048;

// Cache lines that hold one pair of elements of all keys of a block.
inline constexpr int kLinesOfPairs = 4;

inline void prefetch(const std::byte* p) {
  __builtin_prefetch(p);
}

// Query rows [rows][stride] floats, keys of one head as a page holds them -> scores [rows][64].
struct ScoreTask {
  const float* q;
  int stride;
  const std::byte* keys;
  int head_dim;  // Even for bf16.
  float* scores;
};

// Scores [rows][64] of the block times its values: [rows][stride] floats are added to.
struct ValueTask {
  const float* weights;
  const std::byte* values;
  int chunks;
  float* sums;
  int stride;
};

// acc[r][v] += q[r] * keys[v]. Where registers are few, keys are widened one vector at a time.
template <int kRows, int kVectors, typename Keys>
[[gnu::always_inline]] inline void add_products(
    F32x16 (&acc)[kRows][kVectors], const float* q, int stride, Keys keys
) {
  if constexpr (kRows == 1) {
    const F32x16 factor = broadcast(*q);
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      acc[0][v] = fma(factor, keys(v), acc[0][v]);
    }
  } else {
    F32x16 loaded[kVectors];
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      loaded[v] = keys(v);
    }
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const F32x16 factor = broadcast(q[r * stride]);
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) {
        acc[r][v] = fma(factor, loaded[v], acc[r][v]);
      }
    }
  }
}

// Scores of kVectors * 16 keys from `key` on.
template <bool kBf16, int kRows, int kVectors>
inline void score_keys(const ScoreTask& task, int key) {
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
        const auto* ahead = reinterpret_cast<const std::byte*>(pairs) + kPrefetchBytes;
#pragma GCC unroll 4
        for (int line = 0; line < kLinesOfPairs; ++line) {
          prefetch(ahead + line * 64);
        }
      }
      add_products(acc, q, task.stride, [&](int v) {
        return even_bf16(load_u32(pairs + v * kVector));
      });
      if constexpr (!kWideRegisters) {
        // Load again: registers for the raw pairs would push sums out to memory.
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
inline void score_block(const ScoreTask& task) {
  constexpr int kVectors = kWideRegisters || kRows == 1 ? 4 : 1;
  for (int key = 0; key < kBlock; key += kVectors * kVector) {
    score_keys<kBf16, kRows, kVectors>(task, key);
  }
}

// kChunks chunks of 16 value elements from `chunk` on, keys [from, to).
template <bool kBf16, int kRows, int kChunks>
inline void add_value_chunks(const ValueTask& task, int chunk, int from, int to) {
  F32x16 acc[kRows][kChunks];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int c = 0; c < kChunks; ++c) {
      acc[r][c] = load(task.sums + r * task.stride + (chunk + c) * kVector);
    }
  }
  constexpr int kChunkElements = kBlock * kVector;
  for (int key = from; key < to; ++key) {
    const auto at = [&](int c) { return (chunk + c) * kChunkElements + key * kVector; };
#pragma GCC unroll 8
    for (int c = 0; c < kChunks; ++c) {
      prefetch(task.values + at(kChunks + c) * (kBf16 ? 2 : 4));
    }
    add_products(acc, task.weights + key, kBlock, [&](int c) {
      if constexpr (kBf16) {
        return load_bf16(reinterpret_cast<const std::uint16_t*>(task.values) + at(c));
      } else {
        return load(reinterpret_cast<const float*>(task.values) + at(c));
      }
    });
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int c = 0; c < kChunks; ++c) {
      store(task.sums + r * task.stride + (chunk + c) * kVector, acc[r][c]);
    }
  }
}

template <bool kBf16, int kRows>
inline void add_value_block(const ValueTask& task, int from, int to) {
  constexpr int kChunks = kWideRegisters ? 4 : kRows == 1 ? 4 : kRows == 2 ? 2 : 1;
  int chunk = 0;
  for (; chunk + kChunks <= task.chunks; chunk += kChunks) {
    add_value_chunks<kBf16, kRows, kChunks>(task, chunk, from, to);
  }
  for (; chunk < task.chunks; ++chunk) {
    add_value_chunks<kBf16, kRows, 1>(task, chunk, from, to);
  }
}

template <bool kBf16>
inline void score_rows(const ScoreTask& task, int rows) {
  switch (rows) {
    case 1:
      return score_block<kBf16, 1>(task);
    case 2: {
      // Memory is what counts here: two walks along the page are faster than one that skips half of
      // each line's neighbours.
      ScoreTask second = task;
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

template <bool kBf16>
inline void add_values(const ValueTask& task, int rows, int from, int to) {
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

}  // namespace saker::kernels::SAKER_ISA
