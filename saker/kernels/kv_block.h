// SPDX-License-Identifier: Apache-2.0
#pragma once

// How cached rows are kept: their bits, and the pieces of memory they lie in. No MLX.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

namespace saker::kernels {

// "Bits" of cached rows that are kept as they are, in bf16 or float32.
inline constexpr int kUnquantizedBits = 16;

// Asks for rows in float32, whatever dtype the model's weights have.
inline constexpr int kFloat32Bits = 32;

// What a cache can be asked for.
constexpr bool is_kv_bits(int bits) {
  return bits == 4 || bits == 8 || bits == kUnquantizedBits || bits == kFloat32Bits;
}

// Positions of one page, and the block of keys whose order of additions attention fixes.
inline constexpr int kPageRows = 64;

// A piece of memory that holds rows and that several stores may share.
struct KvBlock {
  std::int64_t index = 0;  // Of the page; 0 for a contiguous store.
  const void* data = nullptr;
  std::size_t bytes = 0;
};

using BlockVisitor = std::function<void(const KvBlock& block)>;
// Fills a block; what it throws is passed on.
using BlockReader = std::function<void(std::span<std::byte> block)>;

}  // namespace saker::kernels
