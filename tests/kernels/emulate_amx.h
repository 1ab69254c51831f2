// SPDX-License-Identifier: Apache-2.0
#pragma once

// The tile registers of saker/kernels/cpu/amx/tile.h in plain code, so that tests run the AMX kernels
// on any machine: the manual's order of additions, with subnormal numbers as zero.

#include "tests/kernels/emulate_avx512.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

namespace saker::emulate {

struct TileFile {
  std::uint32_t words[8][16][16] = {};
  int rows[8] = {};
  int columns[8] = {};
};

inline TileFile& tile_file() {
  thread_local TileFile file;
  return file;
}

class Tiles {
 public:
  explicit Tiles(int rows, int columns = 16, int words = 16) {
    for (int tile = 0; tile < 8; ++tile) {
      tile_file().rows[tile] = tile < 6 ? rows : words;
      tile_file().columns[tile] = tile == 4 || tile == 5 ? words : columns;
    }
  }

  ~Tiles() { tile_file() = {}; }

  Tiles(const Tiles&) = delete;
  Tiles& operator=(const Tiles&) = delete;
};

template <int tile>
void tile_clear() {
  std::memset(tile_file().words[tile], 0, sizeof(tile_file().words[tile]));
}

template <int tile>
void tile_load(const void* from, std::ptrdiff_t stride) {
  tile_clear<tile>();
  for (int row = 0; row < tile_file().rows[tile]; ++row) {
    const auto* at = static_cast<const std::byte*>(from) + row * stride;
    std::memcpy(tile_file().words[tile][row], at, 4 * tile_file().columns[tile]);
  }
}

template <int tile>
void tile_store(void* to, std::ptrdiff_t stride) {
  for (int row = 0; row < tile_file().rows[tile]; ++row) {
    auto* at = static_cast<std::byte*>(to) + row * stride;
    std::memcpy(at, tile_file().words[tile][row], 4 * tile_file().columns[tile]);
  }
}

inline float flushed(float value) {
  return std::abs(value) < std::numeric_limits<float>::min() ? std::copysign(0.0F, value) : value;
}

inline float float_of(std::uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return flushed(value);
}

template <int sums, int left, int right>
void tile_add_products() {
  TileFile& file = tile_file();
  for (int m = 0; m < file.rows[left]; ++m) {
    for (int n = 0; n < file.columns[right]; ++n) {
      float first = 0;
      float second = 0;
      for (int pair = 0; pair < 16; ++pair) {
        const std::uint32_t x = file.words[left][m][pair];
        const std::uint32_t w = file.words[right][pair][n];
        first = flushed(std::fma(float_of(x << 16), float_of(w << 16), first));
        second = flushed(std::fma(float_of(x & ~0xffffU), float_of(w & ~0xffffU), second));
      }
      const float sum = flushed(float_of(file.words[sums][m][n]) + flushed(first + second));
      std::memcpy(&file.words[sums][m][n], &sum, sizeof(sum));
    }
  }
}

template <int sums, int left, int right>
void tile_add_byte_products() {
  TileFile& file = tile_file();
  for (int m = 0; m < file.rows[left]; ++m) {
    for (int n = 0; n < file.columns[right]; ++n) {
      for (int i = 0; i < 4 * file.rows[right]; ++i) {
        const auto x = static_cast<std::int8_t>(file.words[left][m][i / 4] >> (i % 4 * 8));
        const auto w = static_cast<std::uint8_t>(file.words[right][i / 4][n] >> (i % 4 * 8));
        file.words[sums][m][n] += static_cast<std::uint32_t>(x * w);
      }
    }
  }
}

}  // namespace saker::emulate
