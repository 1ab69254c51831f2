// SPDX-License-Identifier: Apache-2.0
#include "saker/load/encode/block_packing.h"
#include "saker/load/encode/scale_lanes.h"
#include "saker/load/encode/scale_search.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace saker::load::gguf {
namespace {

// Candidates are tried side by side, although each begins at the minimum of the best one before it:
// those after an improvement are tried again.
constexpr std::size_t kLineVectors = 2;
constexpr std::size_t kLineLanes = kLineVectors * kScaleLanes;

// Pointers, since these loops are hot and spans check each index.
struct LineGroup {
  const float* values;
  const float* weights;
  std::size_t count;
  float largest = 0.0F;  // Largest code.
  float low = 0.0F;      // The smallest value, at most 0.
  float high = 0.0F;
  float weight_sum = 0.0F;
  float value_sum = 0.0F;
};

LineGroup line_group(
    const LineSearch& search, std::span<const float> values, std::span<const float> weights
) {
  LineGroup group{.values = values.data(), .weights = weights.data(), .count = values.size()};
  group.largest = static_cast<float>(search.largest);
  group.low = group.high = group.values[0];
  group.weight_sum = group.weights[0];
  group.value_sum = group.weights[0] * group.values[0];
  for (std::size_t i = 1; i < group.count; ++i) {
    group.low = std::min(group.low, group.values[i]);
    group.high = std::max(group.high, group.values[i]);
    group.weight_sum += group.weights[i];
    group.value_sum += group.weights[i] * group.values[i];
  }
  group.low = std::min(group.low, 0.0F);
  return group;
}

// Codes of values above `low`, times `inverse`.
void line_codes(const LineGroup& group, float inverse, float low, std::uint8_t* codes) {
  const int largest = static_cast<int>(group.largest);
  for (std::size_t i = 0; i < group.count; ++i) {
    const int code = nearest_integer(inverse * (group.values[i] - low));
    codes[i] = static_cast<std::uint8_t>(std::clamp(code, 0, largest));
  }
}

// As std::clamp(nearest_integer(x), 0, largest), for any x.
ScaleLanes line_code(ScaleLanes x, float largest) {
  const ScaleLanes shifted = x + kRoundingTerm;
  ScaleIntegers bits;
  __builtin_memcpy(&bits, &shifted, sizeof(bits));
  const ScaleLanes nearest = __builtin_convertvector(bits & 0x7fffff, ScaleLanes) - 0x1p22F;
  return at_least(at_most(nearest, all_lanes(largest)), ScaleLanes{});
}

template <LineError kError, typename Number>
Number line_error(Number difference) {
  if constexpr (kError == LineError::kSquare) {
    return difference * difference;
  } else {
    return difference < 0.0F ? -difference : difference;
  }
}

// The error of the line through both ends.
template <LineError kError>
float error_of_ends(const LineGroup& group, float scale, const std::uint8_t* codes) {
  float sum = 0.0F;
  for (std::size_t i = 0; i < group.count; ++i) {
    const float value = scale * static_cast<float>(codes[i]) + group.low;
    sum += group.weights[i] * line_error<kError>(value - group.values[i]);
  }
  return sum;
}

// Candidates side by side.
struct TriedLines {
  float inverse[kLineLanes];
  float determinant[kLineLanes];
  float scale[kLineLanes];
  float low[kLineLanes];
  float error[kLineLanes];
};

// Fits a line to the codes of each candidate, which are those of values above `low`.
template <LineError kError>
void try_lines(const LineGroup& group, float low, TriedLines& lines) {
  ScaleLanes codes[kMostGroup][kLineVectors];
  ScaleLanes code_sum[kLineVectors] = {};
  ScaleLanes square_sum[kLineVectors] = {};
  ScaleLanes product_sum[kLineVectors] = {};
  ScaleLanes inverse[kLineVectors];
  for (std::size_t v = 0; v < kLineVectors; ++v) {
    inverse[v] = load_lanes(lines.inverse + v * kScaleLanes);
  }
  for (std::size_t i = 0; i < group.count; ++i) {
    for (std::size_t v = 0; v < kLineVectors; ++v) {
      codes[i][v] = line_code(inverse[v] * (group.values[i] - low), group.largest);
      const ScaleLanes weighted = group.weights[i] * codes[i][v];
      code_sum[v] += weighted;
      square_sum[v] += weighted * codes[i][v];
      product_sum[v] += weighted * group.values[i];
    }
  }
  ScaleLanes scales[kLineVectors];
  ScaleLanes lows[kLineVectors];
  for (std::size_t v = 0; v < kLineVectors; ++v) {
    const ScaleLanes determinant = group.weight_sum * square_sum[v] - code_sum[v] * code_sum[v];
    const ScaleLanes scale =
        (group.weight_sum * product_sum[v] - group.value_sum * code_sum[v]) / determinant;
    const ScaleLanes fitted =
        (square_sum[v] * group.value_sum - code_sum[v] * product_sum[v]) / determinant;
    scales[v] = fitted > 0.0F ? product_sum[v] / square_sum[v] : scale;
    lows[v] = fitted > 0.0F ? ScaleLanes{} : fitted;
    store_lanes(determinant, lines.determinant + v * kScaleLanes);
    store_lanes(scales[v], lines.scale + v * kScaleLanes);
    store_lanes(lows[v], lines.low + v * kScaleLanes);
  }
  ScaleLanes error[kLineVectors] = {};
  for (std::size_t i = 0; i < group.count; ++i) {
    for (std::size_t v = 0; v < kLineVectors; ++v) {
      const ScaleLanes value = scales[v] * codes[i][v] + lows[v];
      error[v] += group.weights[i] * line_error<kError>(value - group.values[i]);
    }
  }
  for (std::size_t v = 0; v < kLineVectors; ++v) {
    store_lanes(error[v], lines.error + v * kScaleLanes);
  }
}

template <LineError kError>
Line best_line(const LineSearch& search, const LineGroup& group, std::uint8_t* codes) {
  if (group.high <= group.low) {
    std::fill_n(codes, group.count, std::uint8_t{0});
    return {.scale = 0.0F, .minimum = -group.low};
  }
  float inverse = group.largest / (group.high - group.low);
  float scale = 1.0F / inverse;
  float low = group.low;
  float codes_low = low;  // Where the best codes begin; `low` is the line's then.
  line_codes(group, inverse, low, codes);
  float least = error_of_ends<kError>(group, scale, codes);
  int next = 0;
  while (next < search.candidates) {
    TriedLines lines;
    const float range = group.high - low;
    for (std::size_t lane = 0; lane < kLineLanes; ++lane) {
      const auto index = static_cast<float>(next + static_cast<int>(lane));
      lines.inverse[lane] = (search.first + search.step * index + group.largest) / range;
    }
    try_lines<kError>(group, low, lines);
    bool better = false;
    for (std::size_t lane = 0; lane < kLineLanes && next < search.candidates && !better; ++lane) {
      ++next;
      better = lines.determinant[lane] > 0.0F && lines.error[lane] < least;
      if (better) {
        least = lines.error[lane];
        inverse = lines.inverse[lane];
        scale = lines.scale[lane];
        codes_low = low;
        low = lines.low[lane];
      }
    }
  }
  line_codes(group, inverse, codes_low, codes);
  return {.scale = scale, .minimum = -low};
}

}  // namespace

Line search_line(
    const LineSearch& search,
    std::span<const float> values,
    std::span<const float> weights,
    std::uint8_t* codes
) {
  const LineGroup group = line_group(search, values, weights);
  return search.error == LineError::kSquare ? best_line<LineError::kSquare>(search, group, codes)
                                            : best_line<LineError::kAbsolute>(search, group, codes);
}

}  // namespace saker::load::gguf
