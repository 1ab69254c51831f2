// SPDX-License-Identifier: Apache-2.0
#include "saker/load/encode/block_packing.h"
#include "saker/load/encode/row_block.h"
#include "saker/load/encode/scale_search.h"
#include "saker/load/gguf/gguf_coded_block.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace saker::load::gguf {
namespace {

constexpr std::size_t kScalesBlock = 256;
constexpr std::size_t kScalesGroup = 16;
constexpr std::size_t kScalesGroups = kScalesBlock / kScalesGroup;

struct BlockScales {
  std::uint8_t codes[kScalesBlock];
  float scales[kScalesGroups];
};

std::span<const float> group_values(const RowBlock& block, std::size_t g) {
  return block.values.subspan(g * kScalesGroup, kScalesGroup);
}

void squares_of(std::span<const float> values, float* to) {
  for (std::size_t i = 0; i < kScalesGroup; ++i) {
    to[i] = values.data()[i] * values.data()[i];
  }
}

// The scale of the largest magnitude, the first of equal ones.
float extreme_scale(const float* scales) {
  float extreme = 0.0F;
  for (std::size_t g = 0; g < kScalesGroups; ++g) {
    extreme = std::abs(scales[g]) > std::abs(extreme) ? scales[g] : extreme;
  }
  return extreme;
}

// Codes for the scales that the block holds: its float16 number at `factor` times integer_of(g).
// Groups whose scale is 0 keep their codes.
template <typename IntegerOf>
void requantize_scaled(
    int half,
    const RowBlock& block,
    const std::byte* factor,
    IntegerOf&& integer_of,
    std::uint8_t* codes
) {
  const float unit = half_at(factor);
  for (std::size_t g = 0; g < kScalesGroups; ++g) {
    const float scale = unit * static_cast<float>(integer_of(g));
    if (scale == 0.0F) {
      continue;
    }
    const float* values = block.values.data() + g * kScalesGroup;
    for (std::size_t i = 0; i < kScalesGroup; ++i) {
      const int code = std::clamp(nearest_integer(values[i] / scale), -half, half - 1);
      codes[g * kScalesGroup + i] = static_cast<std::uint8_t>(code + half);
    }
  }
}

// Codes of 16 scales in 6 bits, and their factor.
struct ScaleCodes {
  std::uint8_t codes[kScalesGroups] = {};
  float factor = 0.0F;
};

ScaleCodes plain_q3(const RowBlock& block, BlockScales& found) {
  for (std::size_t g = 0; g < kScalesGroups; ++g) {
    found.scales[g] = refine_signed(4, group_values(block, g), found.codes + g * kScalesGroup);
  }
  ScaleCodes result;
  const float extreme = extreme_scale(found.scales);
  if (extreme != 0.0F) {
    const float inverse = -32.0F / extreme;
    for (std::size_t g = 0; g < kScalesGroups; ++g) {
      const auto byte = static_cast<std::int8_t>(nearest_integer(inverse * found.scales[g]));
      result.codes[g] = static_cast<std::uint8_t>(std::clamp<int>(byte, -32, 31) + 32);
    }
    result.factor = 1.0F / inverse;
  }
  return result;
}

ScaleCodes weighted_q3(const RowBlock& block, BlockScales& found) {
  float mean_square = 0.0F;
  for (const float value : block.values) {
    mean_square += value * value;
  }
  mean_square = 2.0F * mean_square / static_cast<float>(kScalesBlock);
  float weight_sums[kScalesGroups];
  for (std::size_t g = 0; g < kScalesGroups; ++g) {
    const auto values = group_values(block, g);
    const float* importance = block.importance.data() + g * kScalesGroup;
    float weights[kScalesGroup];
    weight_sums[g] = 0.0F;
    for (std::size_t i = 0; i < kScalesGroup; ++i) {
      const float value = values.data()[i];
      weights[i] = importance[i] * std::sqrt(mean_square + value * value);
      weight_sums[g] += weights[i];
    }
    found.scales[g] = search_signed(4, values, weights, found.codes + g * kScalesGroup);
  }
  ScaleCodes result;
  result.factor = search_signed(32, found.scales, weight_sums, result.codes);
  return result;
}

// Writes 16 codes of 6 bits as 12 bytes: 8 bytes of low halves, then 4 bytes of bit pairs.
void put_six_bits(const std::uint8_t* codes, std::byte* to) {
  put_nibbles(codes, 8, to);
  for (std::size_t i = 0; i < 4; ++i) {
    unsigned pairs = 0;
    for (std::size_t g = 0; g < 4; ++g) {
      pairs |= (codes[4 * g + i] >> 4U & 3U) << 2 * g;
    }
    to[8 + i] = static_cast<std::byte>(pairs);
  }
}

}  // namespace

void encode_q3_k(const RowBlock& block, std::byte* to) {
  BlockScales found;
  const ScaleCodes scales =
      block.importance.empty() ? plain_q3(block, found) : weighted_q3(block, found);
  std::byte* factor = to + 108;
  put_half(scales.factor, factor);
  put_six_bits(scales.codes, to + 96);
  const auto integer_of = [&](std::size_t g) { return scales.codes[g] - 32; };
  requantize_scaled(4, block, factor, integer_of, found.codes);
  put_high_bits(found.codes, 2, to);
  put_bit_pairs(found.codes, 0, to + 32);
  put_bit_pairs(found.codes + 128, 0, to + 64);
}

void encode_q6_k(const RowBlock& block, std::byte* to) {
  constexpr std::size_t kBytes = 210;
  BlockScales found;
  for (std::size_t g = 0; g < kScalesGroups; ++g) {
    const auto values = group_values(block, g);
    float squares[kScalesGroup];
    squares_of(values, squares);
    const std::span<const float> weights =
        block.importance.empty() ? std::span<const float>(squares)
                                 : block.importance.subspan(g * kScalesGroup, kScalesGroup);
    found.scales[g] = search_signed(32, values, weights, found.codes + g * kScalesGroup);
  }
  const float extreme = extreme_scale(found.scales);
  if (std::abs(extreme) < kZeroGroup) {
    std::memset(to, 0, kBytes);
    return;
  }
  const float inverse = -128.0F / extreme;
  std::int8_t integers[kScalesGroups];
  for (std::size_t g = 0; g < kScalesGroups; ++g) {
    const int integer = std::min(127, nearest_integer(inverse * found.scales[g]));
    integers[g] = static_cast<std::int8_t>(integer);
  }
  std::byte* factor = to + 208;
  put_half(1.0F / inverse, factor);
  std::memcpy(to + 192, integers, sizeof(integers));
  requantize_scaled(32, block, factor, [&](std::size_t g) { return integers[g]; }, found.codes);
  for (std::size_t half = 0; half < 2; ++half) {
    const std::uint8_t* codes = found.codes + 128 * half;
    put_nibbles(codes, 64, to + 64 * half);
    put_bit_pairs(codes, 4, to + 128 + 32 * half);
  }
}

}  // namespace saker::load::gguf
