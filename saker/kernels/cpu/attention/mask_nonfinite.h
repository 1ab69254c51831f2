// SPDX-License-Identifier: Apache-2.0
#pragma once

// Handles non-finite values for products that take all keys of a block (bf16 pages). An unseen
// key's weight is zero, but 0 * infinity is NaN. So if a result is not finite, the chunk is
// computed again without such values; they are then added for the rows that see them.

#include "saker/kernels/cpu/attention/products.h"

namespace saker::kernels::SAKER_ISA {

inline bool is_finite_bf16(std::uint32_t upper_half) {
  return (upper_half & 0x7f800000U) != 0x7f800000U;
}

inline bool is_finite(const State& state, int rows) {
  F32x16 zeros = zero();
  for (int i = 0; i < rows * state.stride; i += kVector) {
    zeros = fma(load(state.values + i), zero(), zeros);
  }
  return reduce_add(zeros) == 0.0F;
}

// Copies a block's values, with 0 in place of non-finite ones.
inline void mask_nonfinite(
    const AttendShape& shape, const std::byte* values, std::uint32_t* clean
) {
  const auto* pairs = reinterpret_cast<const std::uint32_t*>(values);
  for (int i = 0; i < shape.value_chunks * kVector * kBlock / 2; ++i) {
    const std::uint32_t first = is_finite_bf16(pairs[i] << 16) ? pairs[i] & 0xffffU : 0;
    const std::uint32_t second = is_finite_bf16(pairs[i]) ? pairs[i] & 0xffff0000U : 0;
    clean[i] = first | second;
  }
}

inline bool sees_key(const BlockKeys& keys, int key) {
  return (key >= keys.first && key < keys.first_end) ||
         (key >= keys.second && key < keys.second_end);
}

// A non-finite value.
struct LeftOut {
  float value;
  int key;
  int element;
};

inline void add_left_out(
    const LeftOut& out, const Block& block, const RowGroup& group, const State& state
) {
  for (int r = 0; r < group.rows; ++r) {
    if (!sees_key(group.keys[r], out.key)) {
      continue;
    }
    const std::uint32_t pair = block.weights[(r * kBlock + out.key) / 2];
    const std::uint32_t weight = out.key % 2 == 0 ? pair << 16 : pair & 0xffff0000U;
    state.values[(group.first + r) * state.stride + out.element] +=
        __builtin_bit_cast(float, weight) * out.value;
  }
}

// Adds the values that mask_nonfinite removed, key by key, for the rows of the group that see them.
inline void add_values_left_out(
    const AttendShape& shape,
    const Block& block,
    const RowGroup& group,
    const State& state,
    const std::byte* values
) {
  constexpr int kPairs = kBlock / 2;
  const auto* words = reinterpret_cast<const std::uint32_t*>(values);
  for (int i = 0; i < shape.value_chunks * kPairs * kVector; ++i) {
    const int key = 2 * (i / kVector % kPairs);
    const int element = i / (kPairs * kVector) * kVector + i % kVector;
    const std::uint32_t first = words[i] << 16;
    const std::uint32_t second = words[i] & 0xffff0000U;
    if (!is_finite_bf16(first)) {
      add_left_out({__builtin_bit_cast(float, first), key, element}, block, group, state);
    }
    if (!is_finite_bf16(second)) {
      add_left_out({__builtin_bit_cast(float, second), key + 1, element}, block, group, state);
    }
  }
}

}  // namespace saker::kernels::SAKER_ISA
