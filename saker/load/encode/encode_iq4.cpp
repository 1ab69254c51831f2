// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/layout/packed_kinds.h"
#include "saker/load/encode/block_packing.h"
#include "saker/load/encode/row_block.h"
#include "saker/load/encode/scale_lanes.h"
#include "saker/load/encode/scale_search.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

namespace saker::load::gguf {
namespace {

constexpr std::size_t kIq4Group = 32;
constexpr std::size_t kIq4Block = 256;
constexpr std::size_t kIq4Groups = kIq4Block / kIq4Group;

// Tried scales: the one that maps the largest value to 127, then those to -134 ... -120.
constexpr std::size_t kIq4Tries = 16;
constexpr float kIq4Lowest = -127.0F;
constexpr int kIq4Reach = 7;

constexpr int iq4_level(std::size_t name) {
  return kernels::kTableCodes[name] - 128;
}

// The nearest level for each floor(2 * x), and its name: levels meet at halves, which belong to the
// higher one. The index has 10 bits, in two's complement.
constexpr std::size_t kIq4Floors = 1024;

struct Iq4Table {
  std::array<float, kIq4Floors> levels{};
  std::array<std::uint8_t, kIq4Floors> names{};
};

constexpr Iq4Table make_iq4_table() {
  Iq4Table table;
  for (std::size_t index = 0; index < kIq4Floors; ++index) {
    const int floor = static_cast<int>(index) - (index < kIq4Floors / 2 ? 0 : 1024);
    std::size_t name = 0;
    while (name < 15 && floor >= iq4_level(name) + iq4_level(name + 1)) {
      ++name;
    }
    table.names[index] = static_cast<std::uint8_t>(name);
    table.levels[index] = static_cast<float>(iq4_level(name));
  }
  return table;
}

constexpr Iq4Table kIq4Table = make_iq4_table();

// The index of x in the table. x beyond the levels counts as their end, NaN as 0.
std::size_t iq4_index(float x) {
  const float kept = x > -128.0F ? std::min(x, 127.0F) : -128.0F;
  const float twice = kept + kept;
  const int nearest = nearest_integer(twice);
  const int floor = nearest - static_cast<int>(static_cast<float>(nearest) > twice);
  return static_cast<std::uint32_t>(floor) & (kIq4Floors - 1);
}

// The weighted sums of level * value and level * level for each tried scale.
struct Iq4Tries {
  float products[kIq4Tries];
  float squares[kIq4Tries];
};

// Sums for all tried scales. REQUIRES: |inverse * value| <= 255.
void try_iq4(const float* inverse, const float* values, const float* weights, Iq4Tries& tries) {
  constexpr std::size_t kVectors = kIq4Tries / kScaleLanes;
  for (std::size_t v = 0; v < kVectors; ++v) {
    const ScaleLanes scale = load_lanes(inverse + v * kScaleLanes);
    ScaleLanes products = {};
    ScaleLanes squares = {};
    for (std::size_t i = 0; i < kIq4Group; ++i) {
      const ScaleLanes exact = scale * values[i];
      const ScaleLanes twice = exact + exact;
      const ScaleLanes shifted = twice + kRoundingTerm;
      ScaleWords floor;
      __builtin_memcpy(&floor, &shifted, sizeof(floor));
      floor += static_cast<ScaleWords>((shifted - kRoundingTerm) > twice);  // Adds -1 where true.
      floor &= static_cast<std::uint32_t>(kIq4Floors - 1);
      ScaleLanes levels;
      for (std::size_t lane = 0; lane < kScaleLanes; ++lane) {
        levels[lane] = kIq4Table.levels.data()[floor[lane]];
      }
      const ScaleLanes weighted = weights[i] * levels;
      products += weighted * values[i];
      squares += weighted * levels;
    }
    store_lanes(products, tries.products + v * kScaleLanes);
    store_lanes(squares, tries.squares + v * kScaleLanes);
  }
}

// The best scale of a group; 0 if all values are about 0.
float iq4_scale(const float* values, const float* weights) {
  float extreme = 0.0F;
  for (std::size_t i = 0; i < kIq4Group; ++i) {
    extreme = std::abs(values[i]) > std::abs(extreme) ? values[i] : extreme;
  }
  if (std::abs(extreme) < kZeroGroup) {
    return 0.0F;
  }
  float inverse[kIq4Tries];
  inverse[0] = 1.0F / (-extreme / kIq4Lowest);
  for (int step = -kIq4Reach; step <= kIq4Reach; ++step) {
    inverse[step + kIq4Reach + 1] = (static_cast<float>(step) + kIq4Lowest) / extreme;
  }
  Iq4Tries tries;
  try_iq4(inverse, values, weights, tries);
  float scale = tries.squares[0] > 0.0F ? tries.products[0] / tries.squares[0] : 0.0F;
  float best = scale * tries.products[0];
  for (std::size_t t = 1; t < kIq4Tries; ++t) {
    const float products = tries.products[t];
    if (tries.squares[t] > 0.0F && products * products > best * tries.squares[t]) {
      scale = products / tries.squares[t];
      best = scale * products;
    }
  }
  return scale;
}

float iq4_mean_square(const RowBlock& block) {
  float sum = 0.0F;
  for (const float value : block.values) {
    sum += value * value;
  }
  return sum * (2.0F / static_cast<float>(block.values.size()));
}

// The scale of the 32 values at `first`.
float iq4_group_scale(const RowBlock& block, std::size_t first, float mean_square) {
  const float* values = block.values.data() + first;
  float weights[kIq4Group];
  for (std::size_t i = 0; i < kIq4Group; ++i) {
    const float square = values[i] * values[i];
    weights[i] = block.importance.empty()
                     ? square
                     : block.importance.data()[first + i] * std::sqrt(mean_square + square);
  }
  return iq4_scale(values, weights);
}

// Writes the names of 32 values' levels.
void put_iq4_names(const float* values, float scale, std::byte* to) {
  const float inverse = scale != 0.0F ? 1.0F / scale : 0.0F;
  std::uint8_t names[kIq4Group];
  for (std::size_t i = 0; i < kIq4Group; ++i) {
    names[i] = kIq4Table.names.data()[iq4_index(inverse * values[i])];
  }
  put_nibbles(names, kIq4Group / 2, to);
}

}  // namespace

void encode_iq4_nl(const RowBlock& block, std::byte* to) {
  const float scale = iq4_group_scale(block, 0, iq4_mean_square(block));
  put_half(scale, to);
  put_iq4_names(block.values.data(), scale, to + 2);
}

void encode_iq4_xs(const RowBlock& block, std::byte* to) {
  const float mean_square = iq4_mean_square(block);
  float scales[kIq4Groups];
  float extreme = 0.0F;
  for (std::size_t g = 0; g < kIq4Groups; ++g) {
    scales[g] = iq4_group_scale(block, g * kIq4Group, mean_square);
    extreme = std::abs(scales[g]) > std::abs(extreme) ? scales[g] : extreme;
  }
  const float factor = -extreme / 32.0F;
  const float inverse = factor != 0.0F ? 1.0F / factor : 0.0F;
  std::uint8_t codes[kIq4Groups];
  unsigned high = 0;
  for (std::size_t g = 0; g < kIq4Groups; ++g) {
    const int integer = std::clamp(nearest_integer(inverse * scales[g]), -32, 31);
    const float* values = block.values.data() + g * kIq4Group;
    put_iq4_names(values, factor * static_cast<float>(integer), to + 8 + 16 * g);
    codes[g] = static_cast<std::uint8_t>(integer + 32);
    high |= static_cast<unsigned>(codes[g] >> 4U) << 2 * g;
  }
  put_half(factor, to);
  to[2] = static_cast<std::byte>(high & 0xFFU);
  to[3] = static_cast<std::byte>(high >> 8U);
  for (std::size_t g = 0; g < kIq4Groups; g += 2) {
    put_nibbles(codes + g, 1, to + 4 + g / 2);
  }
}

}  // namespace saker::load::gguf
