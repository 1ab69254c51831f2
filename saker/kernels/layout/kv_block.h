// SPDX-License-Identifier: Apache-2.0
#pragma once

// How cached rows are kept: their bits, and the blocks of memory that hold them. No MLX.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

namespace saker::kernels {

// "Bits" of cached rows that are not quantized, in bf16 or float32.
inline constexpr int kUnquantizedBits = 16;

// Requests float32 rows, whatever dtype the model's weights have.
inline constexpr int kFloat32Bits = 32;

// True for bits that a cache supports.
constexpr bool is_kv_bits(int bits) {
  return bits == 4 || bits == 8 || bits == kUnquantizedBits || bits == kFloat32Bits;
}

// Positions of one page. Also the block of keys by which attention fixes its order of additions.
inline constexpr int kPageRows = 64;

// A block of memory with rows, which several stores may share.
struct KvBlock {
  std::int64_t index = 0;  // The page's index; 0 for a contiguous store.
  const void* data = nullptr;
  std::size_t bytes = 0;
};

using BlockVisitor = std::function<void(const KvBlock& block)>;
// Fills a block; what it throws is passed on.
using BlockReader = std::function<void(std::span<std::byte> block)>;

}  // namespace saker::kernels
