// SPDX-License-Identifier: Apache-2.0
#include "saker/nn/linear.h"

#include "saker/nn/weights/pack_key.h"

#include "tests/nn/random_weights.h"
#include "tests/support/expect_error.h"
#include <gtest/gtest.h>

namespace saker::nn {
namespace {

using kernels::WeightFormat;
using kernels::WeightKind;
using testing::expect_error;

constexpr WeightFormat kFloat{.kind = WeightKind::kFloat32};
constexpr WeightFormat kAffine4{.kind = WeightKind::kAffine, .bits = 4, .group_size = 32};

mx::array random_rows(int rows, int columns) {
  return mx::random::normal({rows, columns}, mx::float32, mx::random::key(7));
}

bool same(const mx::array& a, const mx::array& b) {
  return mx::array_equal(a, b).item<bool>();
}

TEST(Linear, AddsABiasThatExists) {
  const Weights weights(
      {{"weight", float_tensor({2, 3}, {1, 2, 3, 4, 5, 6})}, {"bias", float_tensor({2}, {10, 20})}},
      {}
  );
  const auto y = Linear(weights, 3, 2)(mx::array({1.0F, 0.0F, -1.0F}, {1, 3}), {});
  EXPECT_TRUE(same(y, mx::array({8.0F, 18.0F}, {1, 2})));
}

TEST(Linear, ShapesMustBeThoseOfTheConfiguration) {
  RandomWeights random(kFloat, 1);
  random.add_linear("fc", 4, 8);
  const Weights weights(random.tensors(), {});
  expect_error(ErrorCode::kCorruptData, {"fc.weight", "[4, 8]", "[4, 9]"}, [&] {
    Linear(weights / "fc", 9, 4);
  });
  expect_error(ErrorCode::kCorruptData, {"fc.weight", "[5, 8]"}, [&] {
    Linear(weights / "fc", 8, 5);
  });
}

TEST(Linear, QuantizedShapesMustBeThoseOfTheConfiguration) {
  RandomWeights random(kAffine4, 1);
  random.add_linear("fc", 16, 64);
  const Weights weights(random.tensors(), {});
  EXPECT_EQ(Linear(weights / "fc", 64, 16).packed().format(), kAffine4);
  expect_error(ErrorCode::kCorruptData, {"fc.weight"}, [&] { Linear(weights / "fc", 64, 17); });
}

const std::vector<int> kOutputs{24, 8, 40};

// Joined parts p0, p1 and p2, and single layers give the same bits.
void expect_joined_is_single(TensorMap tensors) {
  const Weights weights(std::move(tensors), {});
  const MergedLinear joined(
      {{weights / "p0", kOutputs[0]}, {weights / "p1", kOutputs[1]}, {weights / "p2", kOutputs[2]}},
      64
  );
  const auto x = random_rows(5, 64);
  const auto parts = joined.split(x, {});
  ASSERT_EQ(parts.size(), 3U);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Linear single(weights / ("p" + std::to_string(i)), 64, kOutputs[i]);
    EXPECT_TRUE(same(parts[i], single(x, {}))) << i;
  }
  EXPECT_TRUE(same(joined(x, {}), mx::concatenate(parts, 1)));
}

TensorMap three_parts(const std::vector<WeightFormat>& formats, const std::vector<bool>& biased) {
  TensorMap tensors;
  for (std::size_t i = 0; i < kOutputs.size(); ++i) {
    RandomWeights random(formats[i], static_cast<unsigned>(i));
    const std::string path = "p" + std::to_string(i);
    random.add_linear(path, kOutputs[i], 64);
    if (biased[i]) {
      random.add_vector(path + ".bias", kOutputs[i], 0.0F, 1.0F);
    }
    tensors.insert(random.tensors().begin(), random.tensors().end());
  }
  return tensors;
}

TEST(MergedLinear, EqualFormats) {
  expect_joined_is_single(three_parts({kFloat, kFloat, kFloat}, {false, false, false}));
}

TEST(MergedLinear, SomeBiases) {
  expect_joined_is_single(three_parts({kAffine4, kAffine4, kAffine4}, {true, false, true}));
}

TEST(MergedLinear, MixedFormats) {
  expect_joined_is_single(three_parts({kAffine4, kAffine4, kFloat}, {false, true, false}));
}

TEST(MergedLinear, ScalesOfSeveralDtypes) {
  auto tensors = three_parts({kAffine4, kAffine4, kAffine4}, {false, false, false});
  for (const auto* name : {"p1.scales", "p1.biases"}) {
    tensors.at(name) = as_float32(tensors.at(name));
  }
  expect_joined_is_single(tensors);
  // Of one module even.
  tensors.at("p2.biases") = as_float32(tensors.at("p2.biases"));
  expect_joined_is_single(tensors);
}

TEST(MergedLinear, PlainWeightsUnderAFormatThatWasLeft) {
  const auto tensors = three_parts({kFloat, kFloat, kFloat}, {false, false, false});
  QuantizationConfig config{.format = kAffine4, .overrides = {}};
  config.overrides["p1"] = kAffine4;
  const Weights weights(tensors, config);
  EXPECT_EQ(Linear(weights / "p1", 64, kOutputs[1]).packed().format(), kFloat);
}

}  // namespace
}  // namespace saker::nn
