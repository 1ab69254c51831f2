// SPDX-License-Identifier: Apache-2.0
#pragma once

// Transposes sixteen rows of values to lines of sixteen lanes, in squares as wide as a 16-byte
// vector, which every machine has. Reads the bytes of the rows only, without alignment.

#include "saker/kernels/packing/block_rows.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace saker::kernels {

template <typename Value>
struct Square;

template <>
struct Square<std::uint32_t> {
  using Vector [[gnu::vector_size(16)]] = std::uint32_t;
  static constexpr int kSide = 4;

  static Vector low(Vector a, Vector b) { return __builtin_shufflevector(a, b, 0, 4, 1, 5); }

  static Vector high(Vector a, Vector b) { return __builtin_shufflevector(a, b, 2, 6, 3, 7); }
};

template <>
struct Square<std::uint16_t> {
  using Vector [[gnu::vector_size(16)]] = std::uint16_t;
  static constexpr int kSide = 8;

  static Vector low(Vector a, Vector b) {
    return __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
  }

  static Vector high(Vector a, Vector b) {
    return __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
  }
};

// Interleaving row i with row i + half, log2(side) times, transposes.
template <typename Value>
void transpose_square(
    const std::byte* const* rows, std::size_t offset, std::byte* to, std::size_t stride
) {
  using Type = Square<Value>;
  constexpr int kSide = Type::kSide;
  typename Type::Vector lines[kSide];
  for (int i = 0; i < kSide; ++i) {
    std::memcpy(&lines[i], rows[i] + offset, sizeof(lines[i]));
  }
  for (int width = 1; width < kSide; width *= 2) {
    typename Type::Vector mixed[kSide];
    for (int i = 0; i < kSide / 2; ++i) {
      mixed[2 * i] = Type::low(lines[i], lines[i + kSide / 2]);
      mixed[2 * i + 1] = Type::high(lines[i], lines[i + kSide / 2]);
    }
    for (int i = 0; i < kSide; ++i) {
      lines[i] = mixed[i];
    }
  }
  for (int i = 0; i < kSide; ++i) {
    std::memcpy(to + static_cast<std::size_t>(i) * stride, &lines[i], sizeof(lines[i]));
  }
}

// Writes value number i of row `lane` to to[i * stride + lane * sizeof(Value)], for i < count.
template <typename Value>
void transpose(const RowPlaces& rows, int count, std::byte* to, std::size_t stride) {
  constexpr int kSide = Square<Value>::kSide;
  const int whole = count / kSide * kSide;
  for (int lane = 0; lane < kBlockRows; lane += kSide) {
    std::byte* line = to + static_cast<std::size_t>(lane) * sizeof(Value);
    for (int i = 0; i < whole; i += kSide) {
      transpose_square<Value>(
          rows.at + lane, static_cast<std::size_t>(i) * sizeof(Value), line, stride
      );
      line += kSide * stride;
    }
  }
  for (int i = whole; i < count; ++i) {
    for (int lane = 0; lane < kBlockRows; ++lane) {
      const std::size_t at = static_cast<std::size_t>(i) * stride + lane * sizeof(Value);
      std::memcpy(
          to + at, rows.at[lane] + static_cast<std::size_t>(i) * sizeof(Value), sizeof(Value)
      );
    }
  }
}

}  // namespace saker::kernels
