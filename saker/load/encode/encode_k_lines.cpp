// SPDX-License-Identifier: Apache-2.0
#include "saker/load/encode/block_packing.h"
#include "saker/load/encode/row_block.h"
#include "saker/load/encode/scale_search.h"
#include "saker/load/gguf/gguf_coded_block.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace saker::load::gguf {
namespace {

constexpr std::size_t kLinesBlock = 256;
constexpr std::size_t kMostLineGroups = 16;

// One of the types whose groups have scales and minimums.
struct LineType {
  LineSearch plain;
  LineSearch weighted;
  std::size_t group = 32;       // Values of a group.
  int largest_scale = 63;       // Largest code of a scale or minimum.
  float spread = 2.0F;          // The mean square counts so often in weights.
  std::uint8_t plain_cap = 63;  // Caps codes of scales after they were cut to bytes.
  std::uint8_t weighted_cap = 63;
};

constexpr LineType kLinesQ2{
    .plain =
        {.largest = 3, .first = -0.5F, .step = 0.1F, .candidates = 16, .error = LineError::kAbsolute
        },
    .weighted = {.largest = 3, .first = -0.9F, .step = 0.05F, .candidates = 37},
    .group = 16,
    .largest_scale = 15,
    .spread = 1.0F,
    .plain_cap = 255,
    .weighted_cap = 255,
};
constexpr LineType kLinesQ4{
    .plain = {.largest = 15, .first = -1.0F, .step = 0.1F, .candidates = 21},
    .weighted = {.largest = 15, .first = -0.9F, .step = 0.05F, .candidates = 37},
    .weighted_cap = 255,
};
constexpr LineType kLinesQ5{
    .plain = {.largest = 31, .first = -0.5F, .step = 0.1F, .candidates = 16},
    .weighted = {.largest = 31, .first = -0.9F, .step = 0.05F, .candidates = 37},
};

// A number per group: its factor times codes.
struct GroupNumbers {
  float factor = 0.0F;
  std::uint8_t codes[kMostLineGroups] = {};
};

struct BlockLines {
  std::uint8_t codes[kLinesBlock];
  GroupNumbers scales;
  GroupNumbers minimums;
};

// The largest number gets the largest code.
GroupNumbers plain_numbers(const LineType& type, std::span<const float> numbers) {
  GroupNumbers result;
  float highest = 0.0F;
  for (const float number : numbers) {
    highest = std::max(highest, number);
  }
  const auto largest = static_cast<float>(type.largest_scale);
  const float inverse = highest > 0.0F ? largest / highest : 0.0F;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const auto code = static_cast<std::uint8_t>(nearest_integer(inverse * numbers[i]));
    result.codes[i] = std::min(code, type.plain_cap);
  }
  result.factor = highest / largest;
  return result;
}

GroupNumbers weighted_numbers(
    const LineType& type, std::span<const float> numbers, std::span<const float> weights
) {
  GroupNumbers result;
  result.factor = search_positive(type.largest_scale, numbers, weights, result.codes);
  for (std::uint8_t& code : result.codes) {
    code = std::min(code, type.weighted_cap);
  }
  return result;
}

// Weights without an importance: magnitudes, for groups of 32 added to the group's own root mean
// square.
void plain_weights(const LineType& type, std::span<const float> values, float* to) {
  float level = 0.0F;
  if (type.plain.error == LineError::kSquare) {
    float sum = 0.0F;
    for (const float value : values) {
      sum += value * value;
    }
    level = std::sqrt(sum / static_cast<float>(values.size()));
  }
  for (std::size_t i = 0; i < type.group; ++i) {
    to[i] = level + std::abs(values.data()[i]);
  }
}

BlockLines find_lines(const LineType& type, const RowBlock& block) {
  const bool weighted = !block.importance.empty();
  const std::size_t groups = kLinesBlock / type.group;
  float mean_square = 0.0F;
  if (weighted) {
    for (const float value : block.values) {
      mean_square += value * value;
    }
    mean_square = type.spread * mean_square / static_cast<float>(kLinesBlock);
  }
  BlockLines result;
  float scales[kMostLineGroups];
  float minimums[kMostLineGroups];
  float weight_sums[kMostLineGroups];
  for (std::size_t g = 0; g < groups; ++g) {
    const auto values = block.values.subspan(g * type.group, type.group);
    float weights[kMostGroup];
    if (weighted) {
      const float* importance = block.importance.data() + g * type.group;
      for (std::size_t i = 0; i < type.group; ++i) {
        const float value = values.data()[i];
        weights[i] = importance[i] * std::sqrt(mean_square + value * value);
      }
    } else {
      plain_weights(type, values, weights);
    }
    const LineSearch& search = weighted ? type.weighted : type.plain;
    const std::span<const float> used(weights, type.group);
    const Line line = search_line(search, values, used, result.codes + g * type.group);
    scales[g] = line.scale;
    minimums[g] = line.minimum;
    weight_sums[g] = 0.0F;
    for (const float weight : used) {
      weight_sums[g] += weight;
    }
  }
  const std::span<const float> all_scales(scales, groups);
  const std::span<const float> all_minimums(minimums, groups);
  if (weighted) {
    const std::span<const float> sums(weight_sums, groups);
    result.scales = weighted_numbers(type, all_scales, sums);
    result.minimums = weighted_numbers(type, all_minimums, sums);
  } else {
    result.scales = plain_numbers(type, all_scales);
    result.minimums = plain_numbers(type, all_minimums);
  }
  return result;
}

// Codes for the numbers that the block holds: `factors` are its two float16 numbers, and
// numbers_of(g) a group's pair of codes. Groups whose scale is 0 keep their codes.
template <typename NumbersOf>
void requantize_lines(
    const LineType& type,
    const RowBlock& block,
    const std::byte* factors,
    NumbersOf&& numbers_of,
    std::uint8_t* codes
) {
  const float scale_factor = half_at(factors);
  const float minimum_factor = half_at(factors + 2);
  for (std::size_t g = 0; g < kLinesBlock / type.group; ++g) {
    const auto [scale_code, minimum_code] = numbers_of(g);
    const float scale = scale_factor * static_cast<float>(scale_code);
    const float minimum = minimum_factor * static_cast<float>(minimum_code);
    if (scale == 0.0F) {
      continue;
    }
    const float* values = block.values.data() + g * type.group;
    for (std::size_t i = 0; i < type.group; ++i) {
      const int code = nearest_integer((values[i] + minimum) / scale);
      codes[g * type.group + i] =
          static_cast<std::uint8_t>(std::clamp(code, 0, type.plain.largest));
    }
  }
}

// Writes 8 pairs of 6-bit numbers as 12 bytes.
void put_pairs(const BlockLines& lines, std::byte* to) {
  const std::uint8_t* scales = lines.scales.codes;
  const std::uint8_t* minimums = lines.minimums.codes;
  for (std::size_t g = 0; g < 4; ++g) {
    to[g] = static_cast<std::byte>(scales[g] | (scales[g + 4] >> 4U) << 6U);
    to[g + 4] = static_cast<std::byte>(minimums[g] | (minimums[g + 4] >> 4U) << 6U);
    to[g + 8] = static_cast<std::byte>((scales[g + 4] & 0x0FU) | (minimums[g + 4] & 0x0FU) << 4U);
  }
}

std::pair<unsigned, unsigned> pair_at(const std::byte* packed, std::size_t g) {
  if (g < 4) {
    return {byte_at(packed + g) & 63U, byte_at(packed + g + 4) & 63U};
  }
  const unsigned low = byte_at(packed + g + 4);
  return {
      (low & 0x0FU) | (byte_at(packed + g - 4) >> 6U) << 4U,
      low >> 4U | (byte_at(packed + g) >> 6U) << 4U
  };
}

// Writes the 16 bytes before the codes of Q4_K and Q5_K; returns the codes.
BlockLines encode_pairs(const LineType& type, const RowBlock& block, std::byte* to) {
  BlockLines lines = find_lines(type, block);
  put_half(lines.scales.factor, to);
  put_half(lines.minimums.factor, to + 2);
  put_pairs(lines, to + 4);
  const auto numbers_of = [&](std::size_t g) { return pair_at(to + 4, g); };
  requantize_lines(type, block, to, numbers_of, lines.codes);
  return lines;
}

}  // namespace

void encode_q2_k(const RowBlock& block, std::byte* to) {
  BlockLines lines = find_lines(kLinesQ2, block);
  put_half(lines.scales.factor, to + 80);
  put_half(lines.minimums.factor, to + 82);
  for (std::size_t g = 0; g < 16; ++g) {
    to[g] = static_cast<std::byte>(lines.scales.codes[g] | lines.minimums.codes[g] << 4U);
  }
  const auto numbers_of = [&](std::size_t g) {
    return std::pair(byte_at(to + g) & 0x0FU, byte_at(to + g) >> 4U);
  };
  requantize_lines(kLinesQ2, block, to + 80, numbers_of, lines.codes);
  put_bit_pairs(lines.codes, 0, to + 16);
  put_bit_pairs(lines.codes + 128, 0, to + 48);
}

void encode_q4_k(const RowBlock& block, std::byte* to) {
  const BlockLines lines = encode_pairs(kLinesQ4, block, to);
  for (std::size_t quarter = 0; quarter < 4; ++quarter) {
    put_nibbles(lines.codes + 64 * quarter, 32, to + 16 + 32 * quarter);
  }
}

void encode_q5_k(const RowBlock& block, std::byte* to) {
  const BlockLines lines = encode_pairs(kLinesQ5, block, to);
  put_high_bits(lines.codes, 4, to + 16);
  for (std::size_t quarter = 0; quarter < 4; ++quarter) {
    put_nibbles(lines.codes + 64 * quarter, 32, to + 48 + 32 * quarter);
  }
}

}  // namespace saker::load::gguf
