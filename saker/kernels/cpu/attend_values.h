// SPDX-License-Identifier: Apache-2.0
#pragma once

// Weights of up to six query rows times the values of a block.

#include "saker/kernels/cpu/attend_blocks.h"
#include "saker/kernels/cpu/vec.h"

#include <cstddef>
#include <cstdint>

namespace saker::kernels::SAKER_ISA {

// Scores [rows][64] of the block times its values: [rows][stride] floats are added to.
struct ValueTask {
  const float* weights;
  const std::byte* values;
  int chunks;
  float* sums;
  int stride;
};

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
