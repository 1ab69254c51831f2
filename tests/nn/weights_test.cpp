// SPDX-License-Identifier: Apache-2.0
#include "saker/nn/weights/weights.h"

#include "tests/nn/random_weights.h"
#include "tests/support/expect_error.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace saker::nn {
namespace {

using kernels::WeightFormat;
using kernels::WeightKind;
using testing::expect_error;

Tensor empty(DType dtype, std::vector<std::int64_t> shape) {
  Tensor tensor;
  tensor.dtype = dtype;
  tensor.shape = std::move(shape);
  return tensor;
}

// A quantized layer "fc" of these shapes.
Weights quantized(
    std::int64_t words, std::int64_t groups, DType scales, QuantizationConfig config = {}
) {
  TensorMap tensors;
  tensors["fc.weight"] = empty(DType::kUInt32, {8, words});
  tensors["fc.scales"] = empty(scales, {8, groups});
  return {std::move(tensors), std::move(config)};
}

TEST(Weights, ScopesNameTensors) {
  const Weights weights({{"a.b.c", empty(DType::kFloat32, {2})}}, {});
  const auto scope = weights / "a" / "b";
  EXPECT_EQ(scope.path("c"), "a.b.c");
  EXPECT_EQ((weights / "").path("x"), "x");
  EXPECT_TRUE(scope.has("c"));
  EXPECT_FALSE(scope.has("d"));
  EXPECT_EQ(scope.take("c").shape, (std::vector<std::int64_t>{2}));
  EXPECT_FALSE(scope.find("d").has_value());
  expect_error(ErrorCode::kCorruptData, {"a.b.d", "missing"}, [&] { scope.take("d"); });
  expect_error(ErrorCode::kCorruptData, {"a.b.weight", "missing"}, [&] { scope.linear_format(2); });
}

TEST(Weights, RemembersWhatWasTaken) {
  const Weights weights(
      {{"a.x", empty(DType::kFloat32, {2})}, {"a.y", empty(DType::kFloat32, {2})}, {"b", {}}}, {}
  );
  (weights / "a").take("x");
  EXPECT_THAT(weights.unused(), ::testing::ElementsAre("a.y", "b"));
}

TEST(Weights, LookingIsNoTaking) {
  const Weights weights(
      {{"fc.weight", empty(DType::kUInt32, {8, 16})}, {"fc.scales", empty(DType::kBFloat16, {8, 2})}
      },
      {},
      [](const std::string& name) -> Tensor { throw Error(ErrorCode::kInternal, name); }
  );
  const Weights scope = weights / "fc";
  EXPECT_TRUE(scope.has("weight"));
  EXPECT_EQ(scope.find("weight")->shape, (std::vector<std::int64_t>{8, 16}));
  EXPECT_EQ(scope.find("scales")->dtype, DType::kBFloat16);
  EXPECT_EQ(scope.linear_format(128), (WeightFormat{WeightKind::kAffine, 4, 64}));
  EXPECT_THAT(weights.unused(), ::testing::ElementsAre("fc.scales", "fc.weight"));
}

TEST(Weights, MakesAnnouncedTensorsWhenTheyAreTaken) {
  int made = 0;
  const Weights weights(
      {{"a", empty(DType::kFloat32, {2})}, {"b", float_tensor({1}, {3.0F})}},
      {},
      [&](const std::string& name) {
        EXPECT_EQ(name, "a");
        ++made;
        return float_tensor({2}, {1.0F, 2.0F});
      }
  );
  EXPECT_EQ(made, 0);
  const Tensor first = weights.take("a");
  EXPECT_EQ(weights.take("a").data, first.data);
  EXPECT_EQ(weights.find("a")->data, nullptr);
  EXPECT_EQ(made, 1);
  first.release();
  EXPECT_EQ(to_floats(first), (std::vector<float>{1.0F, 2.0F}));  // Who holds it may read it.
  EXPECT_EQ(to_floats(weights.take("a")), to_floats(first));
  EXPECT_EQ(made, 2);
  EXPECT_EQ(to_floats(weights.take("b")), std::vector<float>{3.0F});
}

TEST(Weights, VectorsHaveTheAskedSize) {
  const Weights weights(
      {{"v", float_tensor({3}, {1.0F, 2.0F, 3.0F})}, {"i", empty(DType::kInt32, {0})}}, {}
  );
  EXPECT_TRUE(mx::array_equal(weights.vector("v", 3), mx::array({1.0F, 2.0F, 3.0F})).item<bool>());
  expect_error(ErrorCode::kCorruptData, {"[v]", "[3]", "[4]"}, [&] { weights.vector("v", 4); });
  expect_error(ErrorCode::kCorruptData, {}, [&] { weights.vector("i", 0); });
}

TEST(Weights, FloatFormatFollowsTheDtype) {
  const Weights weights(
      {{"a.weight", empty(DType::kBFloat16, {2, 2})}, {"b.weight", empty(DType::kInt32, {2, 2})}},
      {}
  );
  EXPECT_EQ((weights / "a").linear_format(2), WeightFormat{.kind = WeightKind::kBFloat16});
  expect_error(ErrorCode::kUnsupported, {"b.weight", "I32"}, [&] {
    (weights / "b").linear_format(2);
  });
}

TEST(Weights, FormatFollowsFromShapesAndScales) {
  const auto format = [](std::int64_t words, std::int64_t groups, DType scales) {
    return (quantized(words, groups, scales) / "fc").linear_format(128);
  };
  EXPECT_EQ(format(16, 2, DType::kBFloat16), (WeightFormat{WeightKind::kAffine, 4, 64}));
  EXPECT_EQ(format(32, 4, DType::kFloat16), (WeightFormat{WeightKind::kAffine, 8, 32}));
  EXPECT_EQ(format(12, 1, DType::kFloat32), (WeightFormat{WeightKind::kAffine, 3, 128}));
  EXPECT_EQ(format(16, 4, DType::kUInt8), (WeightFormat{WeightKind::kMxfp4, 4, 32}));
  EXPECT_EQ(format(16, 8, DType::kUInt8), (WeightFormat{WeightKind::kNvfp4, 4, 16}));
  EXPECT_EQ(format(32, 4, DType::kUInt8), (WeightFormat{WeightKind::kMxfp8, 8, 32}));
}

TEST(Weights, ImpossibleShapesAreNamed) {
  const auto check = [](ErrorCode code, std::int64_t words, std::int64_t groups, DType scales) {
    expect_error(code, {"fc.weight"}, [&] {
      (quantized(words, groups, scales) / "fc").linear_format(128);
    });
  };
  check(ErrorCode::kCorruptData, 13, 3, DType::kBFloat16);
  check(ErrorCode::kCorruptData, 16, 0, DType::kBFloat16);
  check(ErrorCode::kCorruptData, 0, 2, DType::kBFloat16);
  check(ErrorCode::kCorruptData, std::int64_t{1} << 62, 2, DType::kBFloat16);
  check(ErrorCode::kUnsupported, 16, 2, DType::kUInt8);
}

TEST(Weights, ExplicitFormatsWin) {
  QuantizationConfig config;
  config.format = WeightFormat{WeightKind::kAffine, 4, 64};
  config.overrides["fc"] = WeightFormat{WeightKind::kAffine, 8, 32};
  EXPECT_EQ(
      (quantized(16, 2, DType::kBFloat16, config) / "fc").linear_format(128),
      (WeightFormat{WeightKind::kAffine, 8, 32})
  );
  config.overrides["fc"] = std::nullopt;
  expect_error(ErrorCode::kUnsupported, {"fc.weight", "U32"}, [&] {
    (quantized(16, 2, DType::kBFloat16, config) / "fc").linear_format(128);
  });
}

}  // namespace
}  // namespace saker::nn
