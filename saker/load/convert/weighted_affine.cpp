// SPDX-License-Identifier: Apache-2.0
#include "saker/load/convert/weighted_affine.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>

namespace saker::load {
namespace {

using kernels::AffineLine;

constexpr std::size_t kLineVector = 4;
using LineFloats [[gnu::vector_size(4 * kLineVector)]] = float;

// A column's weight is at least this part of the group's mean.
constexpr double kLeastWeight = 1e-5;
// Exponents of the factors that bring a group near 1, so that squares stay finite.
constexpr int kMostExponent = 120;
// Times that a line is fitted to its own codes.
constexpr int kFits = 2;
// Ranges that are tried have ends moved inwards by this part of a code's step, times these factors.
constexpr float kEndStep = 0.25F;
constexpr int kFirstEnd = -2;
constexpr int kLastEnd = 6;
// Ranges of weighted standard deviations around the mean.
constexpr std::array<float, 5> kReaches{1.5F, 2.0F, 2.5F, 3.0F, 3.75F};
// A line that loses more than this factor times the least is not fitted any further.
constexpr float kHopeless = 1.5F;

LineFloats load_floats(const float* from) {
  LineFloats lanes;
  __builtin_memcpy(&lanes, from, sizeof(lanes));
  return lanes;
}

float sum_of(LineFloats lanes) {
  return (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
}

// The nearest codes; NaN becomes 0.
LineFloats nearest_codes(LineFloats x, float largest) {
  x = x > 0.0F ? x : LineFloats{};
  x = x < largest ? x : largest - LineFloats{};
  return (x + 0x1p23F) - 0x1p23F;
}

// The nearest number of `dtype`, ties to even.
float number_of(DType dtype, float x) {
  if (dtype == DType::kFloat32) {
    return x;
  }
  std::uint32_t bits = 0;
  __builtin_memcpy(&bits, &x, sizeof(bits));
  const int dropped = dtype == DType::kFloat16 ? 13 : 16;
  if (dtype == DType::kFloat16 && std::fabs(x) < 0x1p-14F) {
    return std::copysign((std::fabs(x) + 0.5F) - 0.5F, x);
  }
  bits += ((1U << (dropped - 1)) - 1U) + (bits >> dropped & 1U);
  bits &= ~((1U << dropped) - 1U);
  __builtin_memcpy(&x, &bits, sizeof(x));
  const bool fits = dtype != DType::kFloat16 || std::fabs(x) <= 65504.0F;
  return fits ? x : std::copysign(std::numeric_limits<float>::infinity(), x);
}

// The error of a line's nearest codes, and the sums that fit a line to them.
struct LineSums {
  float error = 0.0F;
  float code = 0.0F;     // Weighted codes,
  float square = 0.0F;   // their squares,
  float product = 0.0F;  // and their products with the values.
};

class LineGroupSearch {
 public:
  LineGroupSearch(
      DType dtype, int bits, std::span<const float> values, std::span<const float> importance
  )
      : dtype_(dtype), largest_(static_cast<float>((1 << bits) - 1)), count_(values.size()) {
    bring_near_one(values);
    set_weights(importance);
  }

  // The line with the least error, unless that is mlx-lm's with its own codes: then `codes` stay.
  AffineLine run(AffineLine plain, std::uint8_t* codes) {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    best_ = plain;
    const float error = error_of(plain, codes);
    least_ = error < kInfinity ? error : kInfinity;  // It may be NaN.
    if (least_ > 0.0F) {
      search(plain);
    }
    if (is_better_) {
      write_codes(codes);
    }
    return best_;
  }

 private:
  void bring_near_one(std::span<const float> values) {
    float most = 0.0F;
    for (const float value : values) {
      most = std::max(most, std::fabs(value));
    }
    int exponent = 0;
    std::frexp(most, &exponent);
    exponent = std::clamp(exponent, -kMostExponent, kMostExponent);
    down_ = std::ldexp(1.0F, -exponent);
    up_ = std::ldexp(1.0F, exponent);
    low_ = high_ = values[0] * down_;
    for (std::size_t i = 0; i < count_; ++i) {
      values_[i] = values[i] * down_;
      low_ = std::min(low_, values_[i]);
      high_ = std::max(high_, values_[i]);
    }
  }

  void set_weights(std::span<const float> importance) {
    double sum = 0.0;
    for (const float one : importance) {
      sum += static_cast<double>(one);
    }
    const double mean = sum / static_cast<double>(count_);
    for (std::size_t i = 0; i < count_; ++i) {
      const double share = mean > 0.0 ? static_cast<double>(importance[i]) / mean : 1.0;
      weights_[i] = static_cast<float>(share + kLeastWeight);
      weight_sum_ += static_cast<double>(weights_[i]);
      value_sum_ += static_cast<double>(weights_[i]) * static_cast<double>(values_[i]);
    }
  }

  // In numbers near 1, as all lines below. The real numbers are `dtype`'s.
  AffineLine near_one(AffineLine line) const { return {line.scale * down_, line.bias * down_}; }

  float rounded(float number) const { return number_of(dtype_, number * up_) * down_; }

  float error_of(AffineLine real, const std::uint8_t* codes) const {
    const AffineLine line = near_one(real);
    LineFloats error{};
    for (std::size_t i = 0; i < count_; i += kLineVector) {
      const LineFloats code = {
          static_cast<float>(codes[i]),
          static_cast<float>(codes[i + 1]),
          static_cast<float>(codes[i + 2]),
          static_cast<float>(codes[i + 3]),
      };
      const LineFloats miss = code * line.scale + line.bias - load_floats(values_ + i);
      error += load_floats(weights_ + i) * (miss * miss);
    }
    return sum_of(error);
  }

  LineSums sums_of(AffineLine line) const {
    const float inverse = 1.0F / line.scale;
    LineFloats error{};
    LineFloats code_sum{};
    LineFloats square{};
    LineFloats product{};
    for (std::size_t i = 0; i < count_; i += kLineVector) {
      const LineFloats value = load_floats(values_ + i);
      const LineFloats weight = load_floats(weights_ + i);
      const LineFloats code = nearest_codes((value - line.bias) * inverse, largest_);
      const LineFloats miss = code * line.scale + line.bias - value;
      const LineFloats weighted = weight * code;
      error += weight * (miss * miss);
      code_sum += weighted;
      square += weighted * code;
      product += weighted * value;
    }
    return {sum_of(error), sum_of(code_sum), sum_of(square), sum_of(product)};
  }

  // The bias that suits a rounded scale, rounded.
  float bias_for(float scale, const LineSums& sums) const {
    const double codes = static_cast<double>(scale) * static_cast<double>(sums.code);
    return rounded(static_cast<float>((value_sum_ - codes) / weight_sum_));
  }

  // The best line for the codes. Its scale is 0 if all codes are the same.
  AffineLine fitted(const LineSums& sums) const {
    const auto codes = static_cast<double>(sums.code);
    const double determinant = weight_sum_ * static_cast<double>(sums.square) - codes * codes;
    if (!(determinant > 0.0)) {
      return {0.0F, 0.0F};
    }
    const double scale =
        (weight_sum_ * static_cast<double>(sums.product) - value_sum_ * codes) / determinant;
    const float number = rounded(static_cast<float>(scale));
    return {number, bias_for(number, sums)};
  }

  // Keeps the line if it is better.
  LineSums try_line(AffineLine line) {
    const LineSums sums = sums_of(line);
    if (sums.error < least_) {
      least_ = sums.error;
      near_ = line;
      best_ = {line.scale * up_, line.bias * up_};
      best_sums_ = sums;
      is_better_ = true;
    }
    return sums;
  }

  static bool can_divide(AffineLine line) {
    return line.scale != 0.0F && std::isfinite(line.scale) && std::isfinite(line.bias) &&
           std::isfinite(1.0F / line.scale);
  }

  void follow(AffineLine line) {
    for (int fit = 0; fit <= kFits && can_divide(line); ++fit) {
      const LineSums sums = try_line(line);
      const AffineLine next = fitted(sums);
      if (sums.error > kHopeless * least_ || (next.scale == line.scale && next.bias == line.bias)) {
        return;
      }
      line = next;
    }
  }

  // A line from `low` to `high`.
  void follow_range(float low, float high) {
    follow({rounded((high - low) / largest_), rounded(low)});
  }

  void search(AffineLine plain) {
    follow(near_one(plain));
    if (!(high_ > low_)) {
      follow({rounded(0.5F), rounded(low_)});  // The bias is the value, any scale will do.
      return;
    }
    const float step = kEndStep * (high_ - low_) / largest_;
    follow_range(low_, high_);
    for (int i = kFirstEnd; i <= kLastEnd; ++i) {
      const float move = step * static_cast<float>(i);
      if (i != 0) {
        follow_range(low_ + move, high_ - move);
        follow_range(low_ + 2.0F * move, high_);
        follow_range(low_, high_ - 2.0F * move);
      }
    }
    follow_spread();
    if (is_better_) {
      try_neighbors();
    }
  }

  // Ranges of some standard deviations, since values of little weight may be far outside.
  void follow_spread() {
    double squares = 0.0;
    const double mean = value_sum_ / weight_sum_;
    for (std::size_t i = 0; i < count_; ++i) {
      const double apart = static_cast<double>(values_[i]) - mean;
      squares += static_cast<double>(weights_[i]) * apart * apart;
    }
    const auto middle = static_cast<float>(mean);
    const auto deviation = static_cast<float>(std::sqrt(squares / weight_sum_));
    for (const float reach : kReaches) {
      follow_range(middle - reach * deviation, middle + reach * deviation);
    }
  }

  // Lines with other scales near the best one, since the nearest number of the dtype need not be the
  // best; and the best one from its other end, whose bias may be rounded less.
  void try_neighbors() {
    const AffineLine best = near_;
    const LineSums sums = best_sums_;
    const float step = dtype_ == DType::kBFloat16 ? 0x1p-8F : 0x1p-11F;
    for (const float steps : {-2.0F, -1.0F, 1.0F, 2.0F}) {
      const float scale = rounded(best.scale * (1.0F + steps * step));
      follow({scale, bias_for(scale, sums)});
    }
    follow({-near_.scale, rounded(near_.bias + near_.scale * largest_)});
  }

  void write_codes(std::uint8_t* codes) const {
    const float inverse = 1.0F / near_.scale;
    for (std::size_t i = 0; i < count_; i += kLineVector) {
      const LineFloats x = (load_floats(values_ + i) - near_.bias) * inverse;
      const LineFloats code = nearest_codes(x, largest_);
      for (std::size_t lane = 0; lane < kLineVector; ++lane) {
        codes[i + lane] = static_cast<std::uint8_t>(code[lane]);
      }
    }
  }

  DType dtype_;
  float largest_;  // Largest code.
  std::size_t count_;
  float values_[kMostAffineGroup];
  float weights_[kMostAffineGroup];
  float down_ = 1.0F;
  float up_ = 1.0F;
  float low_ = 0.0F;
  float high_ = 0.0F;
  double weight_sum_ = 0.0;
  double value_sum_ = 0.0;
  AffineLine best_{};  // In real numbers.
  AffineLine near_{};
  LineSums best_sums_;
  float least_ = 0.0F;
  bool is_better_ = false;
};

}  // namespace

AffineLine weighted_line(
    DType dtype,
    int bits,
    std::span<const float> values,
    std::span<const float> importance,
    std::uint8_t* codes
) {
  assert(values.size() <= kMostAffineGroup && values.size() == importance.size());
  const AffineLine plain =
      kernels::quantize_loops().encode_group(dtype, bits, values.data(), values.size(), codes);
  return LineGroupSearch(dtype, bits, values, importance).run(plain, codes);
}

void encode_weighted(
    const kernels::WeightFormat& format,
    DType dtype,
    std::span<const float> values,
    std::span<const float> importance,
    const kernels::QuantizedBytes& to
) {
  std::array<std::uint8_t, kMostAffineGroup> codes;
  const AffineLine line = weighted_line(dtype, format.bits, values, importance, codes.data());
  const auto bits = static_cast<std::size_t>(format.bits);
  for (std::size_t i = 0; i < values.size(); i += 8) {
    std::uint64_t stream = 0;
    for (std::size_t j = 0; j < 8; ++j) {
      stream |= std::uint64_t{codes[i + j]} << (j * bits);
    }
    std::memcpy(to.codes + i / 8 * bits, &stream, bits);
  }
  const kernels::QuantizeLoops& loops = kernels::quantize_loops();
  loops.narrow(&line.scale, dtype, 1, to.scales);
  loops.narrow(&line.bias, dtype, 1, to.biases);
}

}  // namespace saker::load
