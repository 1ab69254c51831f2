// SPDX-License-Identifier: Apache-2.0
#pragma once

// The tile registers of Intel AMX: eight of up to 16 rows of 64 bytes, numbered at compile time
// (Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, TDPBF16PS and TDPBSUD).
// Here 0 to 3 hold sums, 4 and 5 the left operands, 6 and 7 the right ones: words of two bf16 or of
// four bytes.
//
// With SAKER_EMULATE_AMX (tests only) plain code keeps the manual's order of additions.

#if defined(SAKER_EMULATE_AMX)
#include "tests/kernels/emulate_amx.h"
#else
#include <immintrin.h>
#endif

#include <cstddef>
#include <cstdint>

namespace saker::kernels::SAKER_ISA {

inline constexpr int kTileHeight = 16;
inline constexpr int kTilePairs = 16;                // Pairs of bf16 in a row.
inline constexpr int kTileColumns = 2 * kTilePairs;  // That one product sums over.
inline constexpr int kTileBytes = 64 * kTileHeight;  // Size of a whole tile.
inline constexpr std::ptrdiff_t kTileStride = 64;    // For tiles without gaps.
inline constexpr int kLeft = 4;
inline constexpr int kRight = 6;

#if defined(SAKER_EMULATE_AMX)
using emulate::tile_add_byte_products;
using emulate::tile_add_products;
using emulate::tile_clear;
using emulate::tile_load;
using emulate::tile_store;
using emulate::Tiles;
#else
// Configures the registers of this thread. Sums have `rows` rows and `columns` columns. Left
// operands have `rows` rows of `words` words, right operands `words` rows of `columns` words.
// REQUIRES: the kernel has granted AMX to the process (see dispatch.cpp).
class Tiles {
 public:
  explicit Tiles(int rows, int columns = kTileHeight, int words = kTilePairs) {
    Configuration configuration;
    for (int tile = 0; tile < 8; ++tile) {
      const bool left = tile == kLeft || tile == kLeft + 1;
      configuration.column_bytes[tile] = static_cast<std::uint16_t>(4 * (left ? words : columns));
      configuration.rows[tile] = static_cast<std::uint8_t>(tile < kRight ? rows : words);
    }
    asm volatile("ldtilecfg %0" ::"m"(configuration));
  }

  ~Tiles() { asm volatile("tilerelease" ::: "memory"); }

  Tiles(const Tiles&) = delete;
  Tiles& operator=(const Tiles&) = delete;

 private:
  struct alignas(64) Configuration {
    std::uint8_t palette = 1;
    std::uint8_t start_row = 0;
    std::uint8_t reserved[14] = {};
    std::uint16_t column_bytes[16] = {};
    std::uint8_t rows[16] = {};
  };
};

template <int tile>
[[gnu::always_inline]] inline void tile_clear() {
  asm volatile("tilezero %%tmm%c0" ::"i"(tile));
}

template <int tile>
[[gnu::always_inline]] inline void tile_load(const void* from, std::ptrdiff_t stride) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(stride), "i"(tile) : "memory");
}

template <int tile>
[[gnu::always_inline]] inline void tile_store(void* to, std::ptrdiff_t stride) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(to), "r"(stride), "i"(tile) : "memory");
}

// sums[m][n] += the products of row m of `left` and column n of `right`. The first elements of the
// sixteen pairs are one chain of fused multiply-adds from 0, the second ones another; the sum of
// both is added. Subnormal numbers count as zero.
template <int sums, int left, int right>
[[gnu::always_inline]] inline void tile_add_products() {
  asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(sums), "i"(left), "i"(right));
}

// As above, for signed bytes of `left` and unsigned ones of `right`, into 32-bit integers.
template <int sums, int left, int right>
[[gnu::always_inline]] inline void tile_add_byte_products() {
  asm volatile("tdpbsud %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(sums), "i"(left), "i"(right));
}
#endif

}  // namespace saker::kernels::SAKER_ISA
