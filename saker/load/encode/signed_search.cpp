// SPDX-License-Identifier: Apache-2.0
#include "saker/load/encode/block_packing.h"
#include "saker/load/encode/scale_lanes.h"
#include "saker/load/encode/scale_search.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

namespace saker::load::gguf {
namespace {

// Tried scales: the one that maps the largest value to -half, then nine below and nine above.
constexpr std::size_t kSignedTries = 19;
constexpr std::size_t kSignedLanes = 20;

// Pointers, since these loops are hot and spans check each index.
struct SignedGroup {
  const float* values;
  const float* weights;
  std::size_t count;
  int half;
  float weighted[kMostGroup];  // weight * value.
};

// The weighted sums of value * code and code * code for each tried scale.
struct SignedTries {
  float inverse[kSignedLanes];
  float products[kSignedLanes];
  float squares[kSignedLanes];
};

// The value of the largest magnitude, the first of equal ones.
float extreme_of(std::span<const float> values) {
  float extreme = 0.0F;
  for (const float value : values) {
    extreme = std::abs(value) > std::abs(extreme) ? value : extreme;
  }
  return extreme;
}

int signed_code(float value, int half) {
  return std::clamp(nearest_integer(value), -half, half - 1);
}

// Fills the sums of kVectors * kScaleLanes tries.
template <std::size_t kVectors>
void try_signed(const SignedGroup& group, std::size_t first, SignedTries& tries) {
  const ScaleLanes lowest = all_lanes(static_cast<float>(-group.half));
  const ScaleLanes highest = all_lanes(static_cast<float>(group.half - 1));
  ScaleLanes inverse[kVectors];
  ScaleLanes products[kVectors] = {};
  ScaleLanes squares[kVectors] = {};
  for (std::size_t v = 0; v < kVectors; ++v) {
    inverse[v] = load_lanes(tries.inverse + first + v * kScaleLanes);
  }
  for (std::size_t i = 0; i < group.count; ++i) {
    for (std::size_t v = 0; v < kVectors; ++v) {
      const ScaleLanes exact = inverse[v] * group.values[i];
      const ScaleLanes code = nearest_lanes(at_least(at_most(exact, highest), lowest));
      products[v] += group.weighted[i] * code;
      squares[v] += group.weights[i] * code * code;
    }
  }
  for (std::size_t v = 0; v < kVectors; ++v) {
    store_lanes(products[v], tries.products + first + v * kScaleLanes);
    store_lanes(squares[v], tries.squares + first + v * kScaleLanes);
  }
}

// Moves codes to the best ones for the others' scale, in at most five rounds.
class CodeRefiner {
 public:
  CodeRefiner(int half, std::span<const float> values, float inverse)
      : values_(values.data()), count_(values.size()), half_(half) {
    for (std::size_t i = 0; i < count_; ++i) {
      codes_[i] = signed_code(inverse * values_[i], half_);
      add(i, codes_[i], products_, squares_);
    }
  }

  void run() {
    constexpr int kRounds = 5;
    for (int round = 0; round < kRounds; ++round) {
      bool changed = false;
      for (std::size_t i = 0; i < count_; ++i) {
        changed = move(i) || changed;
      }
      if (!changed) {
        return;
      }
    }
  }

  // Writes the codes and returns the scale.
  float write(std::uint8_t* codes) const {
    for (std::size_t i = 0; i < count_; ++i) {
      codes[i] = static_cast<std::uint8_t>(codes_[i] + half_);
    }
    return squares_ > 0.0F ? products_ / squares_ : 0.0F;
  }

 private:
  void add(std::size_t i, int code, float& products, float& squares) const {
    const auto number = static_cast<float>(code);
    const float weight = values_[i] * values_[i];
    products += weight * values_[i] * number;
    squares += weight * number * number;
  }

  bool move(std::size_t i) {
    const float value = values_[i];
    const float weight = value * value;
    const auto old = static_cast<float>(codes_[i]);
    float products = products_ - weight * value * old;
    if (!(products > 0.0F)) {
      return false;
    }
    float squares = squares_ - weight * old * old;
    const int code = signed_code(value * squares / products, half_);
    if (code == codes_[i]) {
      return false;
    }
    add(i, code, products, squares);
    if (!(squares > 0.0F && products * products * squares_ > products_ * products_ * squares)) {
      return false;
    }
    codes_[i] = code;
    products_ = products;
    squares_ = squares;
    return true;
  }

  const float* values_;
  std::size_t count_;
  int half_;
  int codes_[kMostGroup] = {};
  float products_ = 0.0F;
  float squares_ = 0.0F;
};

}  // namespace

float search_signed(
    int half, std::span<const float> values, std::span<const float> weights, std::uint8_t* codes
) {
  const float extreme = extreme_of(values);
  SignedGroup group{values.data(), weights.data(), values.size(), half, {}};
  if (std::abs(extreme) < kZeroGroup) {
    std::fill_n(codes, group.count, std::uint8_t{0});
    return 0.0F;
  }
  for (std::size_t i = 0; i < group.count; ++i) {
    group.weighted[i] = group.weights[i] * group.values[i];
  }
  SignedTries tries;
  for (std::size_t t = 0; t < kSignedLanes; ++t) {
    const int step = static_cast<int>(t) - (t < 10 ? 10 : 9);
    const float shift = t == 0 ? 0.0F : 0.1F * static_cast<float>(step);
    tries.inverse[t] = -(static_cast<float>(half) + shift) / extreme;
  }
  try_signed<2>(group, 0, tries);
  try_signed<2>(group, 2 * kScaleLanes, tries);
  try_signed<1>(group, 4 * kScaleLanes, tries);
  float scale = tries.squares[0] != 0.0F ? tries.products[0] / tries.squares[0] : 0.0F;
  float best = scale * tries.products[0];
  std::size_t winner = 0;
  for (std::size_t t = 1; t < kSignedTries; ++t) {
    const float products = tries.products[t];
    if (tries.squares[t] > 0.0F && products * products > best * tries.squares[t]) {
      scale = products / tries.squares[t];
      best = scale * products;
      winner = t;
    }
  }
  for (std::size_t i = 0; i < group.count; ++i) {
    const int code = signed_code(tries.inverse[winner] * group.values[i], half);
    codes[i] = static_cast<std::uint8_t>(code + half);
  }
  return scale;
}

float refine_signed(int half, std::span<const float> values, std::uint8_t* codes) {
  const float extreme = extreme_of(values);
  if (std::abs(extreme) < kZeroGroup) {
    std::fill_n(codes, values.size(), std::uint8_t{0});
    return 0.0F;
  }
  CodeRefiner refiner(half, values, static_cast<float>(-half) / extreme);
  refiner.run();
  return refiner.write(codes);
}

}  // namespace saker::load::gguf
