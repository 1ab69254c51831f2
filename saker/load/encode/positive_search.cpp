// SPDX-License-Identifier: Apache-2.0
#include "saker/load/encode/block_packing.h"
#include "saker/load/encode/scale_search.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace saker::load::gguf {
namespace {

// Pointers, since these loops are hot and spans check each index.
struct PositiveGroup {
  const float* values;
  const float* weights;
  std::size_t count;
  int largest;
};

int capped_code(const PositiveGroup& group, float value) {
  return std::min(nearest_integer(value), group.largest);
}

template <typename CodeOf>
float positive_error(const PositiveGroup& group, float inverse, CodeOf&& code_of) {
  const float scale = 1.0F / inverse;
  float sum = 0.0F;
  for (std::size_t i = 0; i < group.count; ++i) {
    const auto code = static_cast<float>(code_of(inverse * group.values[i]));
    const float difference = group.values[i] - scale * code;
    sum += group.weights[i] * difference * difference;
  }
  return sum;
}

// 1 / scale of the best of nine scales around the one that maps `high` to the largest code.
float best_inverse(const PositiveGroup& group, float high) {
  const auto largest = static_cast<float>(group.largest);
  float best = largest / high;
  // The first error has codes as bytes, the others cap them.
  float least = positive_error(group, best, [](float value) {
    return static_cast<std::uint8_t>(nearest_integer(value));
  });
  for (int step = -4; step <= 4; ++step) {
    if (step == 0) {
      continue;
    }
    const float inverse = (0.1F * static_cast<float>(step) + largest) / high;
    const float error =
        positive_error(group, inverse, [&](float value) { return capped_code(group, value); });
    if (error < least) {
      least = error;
      best = inverse;
    }
  }
  return best;
}

// The weighted sums of value * code and code * code; the scale is their quotient.
struct CodeSums {
  float products = 0.0F;
  float squares = 0.0F;
};

// Moves each code to the best one for the others' scale. Returns true if a code changed.
bool move_codes(const PositiveGroup& group, CodeSums& sums, std::uint8_t* codes) {
  bool changed = false;
  for (std::size_t i = 0; i < group.count; ++i) {
    const float weight = group.weights[i];
    const float value = group.values[i];
    const auto old = static_cast<float>(codes[i]);
    CodeSums moved{sums.products - weight * value * old, sums.squares - weight * old * old};
    if (!(moved.products > 0.0F && moved.squares > 0.0F)) {
      continue;
    }
    const int code = capped_code(group, value * moved.squares / moved.products);
    if (code == codes[i]) {
      continue;
    }
    const auto next = static_cast<float>(code);
    moved.products += weight * value * next;
    moved.squares += weight * next * next;
    if (moved.products * moved.products * sums.squares >
        sums.products * sums.products * moved.squares) {
      codes[i] = static_cast<std::uint8_t>(code);
      sums = moved;
      changed = true;
    }
  }
  return changed;
}

}  // namespace

float search_positive(
    int largest, std::span<const float> values, std::span<const float> weights, std::uint8_t* codes
) {
  const PositiveGroup group{values.data(), weights.data(), values.size(), largest};
  float high = 0.0F;
  for (const float value : values) {
    high = std::max(value, high);
  }
  if (high < kZeroGroup) {
    std::fill_n(codes, group.count, std::uint8_t{0});
    return 0.0F;
  }
  const float inverse = best_inverse(group, high);
  CodeSums sums;
  for (std::size_t i = 0; i < group.count; ++i) {
    const int code = capped_code(group, inverse * group.values[i]);
    const auto number = static_cast<float>(code);
    codes[i] = static_cast<std::uint8_t>(code);
    sums.products += group.weights[i] * group.values[i] * number;
    sums.squares += group.weights[i] * number * number;
  }
  constexpr int kRounds = 5;
  for (int round = 0; round < kRounds && move_codes(group, sums, codes); ++round) {
  }
  return sums.squares > 0.0F ? sums.products / sums.squares : 0.0F;
}

}  // namespace saker::load::gguf
