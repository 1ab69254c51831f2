// SPDX-License-Identifier: Apache-2.0
#include "saker/load/encode/block_packing.h"
#include "saker/load/encode/row_block.h"
#include "saker/load/encode/scale_search.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

namespace saker::load::gguf {
namespace {

constexpr std::size_t kLegacyBlock = 32;

// Codes of a block and its line; value = scale * code - minimum, or scale * (code - half).
struct LegacyCodes {
  std::uint8_t codes[kLegacyBlock];
  Line line;
};

// Importance times the magnitude that a weight of this row may have.
void legacy_weights(const RowBlock& block, float* to) {
  const float* values = block.values.data();
  for (std::size_t i = 0; i < kLegacyBlock; ++i) {
    to[i] = block.importance.data()[i] * std::sqrt(block.mean_square + values[i] * values[i]);
  }
}

// As ggml: a code is first cut to a signed byte, then capped.
std::uint8_t legacy_code(float value, int largest) {
  const auto byte = static_cast<std::int8_t>(truncated_integer(value));
  return static_cast<std::uint8_t>(std::min<int>(byte, largest));
}

// Without an importance the value of the largest magnitude gets code 0.
LegacyCodes symmetric_codes(const RowBlock& block, int half) {
  LegacyCodes result;
  const float* values = block.values.data();
  if (!block.importance.empty()) {
    float weights[kLegacyBlock];
    legacy_weights(block, weights);
    result.line.scale = search_signed(half, block.values, weights, result.codes);
    return result;
  }
  float extreme = 0.0F;
  for (std::size_t i = 0; i < kLegacyBlock; ++i) {
    extreme = std::abs(extreme) < std::abs(values[i]) ? values[i] : extreme;
  }
  const float scale = extreme / static_cast<float>(-half);
  const float inverse = scale != 0.0F ? 1.0F / scale : 0.0F;
  for (std::size_t i = 0; i < kLegacyBlock; ++i) {
    const float shifted = values[i] * inverse + (static_cast<float>(half) + 0.5F);
    result.codes[i] = legacy_code(shifted, 2 * half - 1);
  }
  result.line.scale = scale;
  return result;
}

// Without an importance both ends of the range have codes.
LegacyCodes line_codes_of(const RowBlock& block, int largest) {
  LegacyCodes result;
  const float* values = block.values.data();
  if (!block.importance.empty()) {
    float weights[kLegacyBlock];
    legacy_weights(block, weights);
    const LineSearch search{.largest = largest, .first = -0.9F, .step = 0.05F, .candidates = 37};
    result.line = search_line(search, block.values, weights, result.codes);
    return result;
  }
  float low = std::numeric_limits<float>::max();
  float high = -low;
  for (std::size_t i = 0; i < kLegacyBlock; ++i) {
    low = std::min(low, values[i]);
    high = std::max(high, values[i]);
  }
  const float scale = (high - low) / static_cast<float>(largest);
  const float inverse = scale != 0.0F ? 1.0F / scale : 0.0F;
  for (std::size_t i = 0; i < kLegacyBlock; ++i) {
    result.codes[i] = legacy_code((values[i] - low) * inverse + 0.5F, largest);
  }
  result.line = {.scale = scale, .minimum = -low};
  return result;
}

// Bit i of four bytes is the fifth bit of code i.
void put_fifth_bits(const LegacyCodes& block, std::byte* to) {
  for (std::size_t byte = 0; byte < 4; ++byte) {
    unsigned bits = 0;
    for (std::size_t i = 0; i < 8; ++i) {
      bits |= (block.codes[8 * byte + i] >> 4U & 1U) << i;
    }
    to[byte] = static_cast<std::byte>(bits);
  }
}

}  // namespace

void encode_q4_0(const RowBlock& block, std::byte* to) {
  const LegacyCodes found = symmetric_codes(block, 8);
  put_half(found.line.scale, to);
  put_nibbles(found.codes, kLegacyBlock / 2, to + 2);
}

void encode_q4_1(const RowBlock& block, std::byte* to) {
  const LegacyCodes found = line_codes_of(block, 15);
  put_half(found.line.scale, to);
  put_half(-found.line.minimum, to + 2);
  put_nibbles(found.codes, kLegacyBlock / 2, to + 4);
}

void encode_q5_0(const RowBlock& block, std::byte* to) {
  const LegacyCodes found = symmetric_codes(block, 16);
  put_half(found.line.scale, to);
  put_fifth_bits(found, to + 2);
  put_nibbles(found.codes, kLegacyBlock / 2, to + 6);
}

void encode_q5_1(const RowBlock& block, std::byte* to) {
  const LegacyCodes found = line_codes_of(block, 31);
  put_half(found.line.scale, to);
  put_half(-found.line.minimum, to + 2);
  put_fifth_bits(found, to + 4);
  put_nibbles(found.codes, kLegacyBlock / 2, to + 8);
}

void encode_q8_0(const RowBlock& block, std::byte* to) {
  const float* values = block.values.data();
  float highest = 0.0F;
  for (std::size_t i = 0; i < kLegacyBlock; ++i) {
    highest = std::max(highest, std::abs(values[i]));
  }
  const float scale = highest / 127.0F;
  const float inverse = scale != 0.0F ? 1.0F / scale : 0.0F;
  put_half(scale, to);
  for (std::size_t i = 0; i < kLegacyBlock; ++i) {
    to[2 + i] = static_cast<std::byte>(rounded_integer(values[i] * inverse));
  }
}

}  // namespace saker::load::gguf
