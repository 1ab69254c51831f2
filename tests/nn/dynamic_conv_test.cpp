// SPDX-License-Identifier: Apache-2.0
#include "saker/nn/stack/dynamic_conv.h"

#include "saker/cache/kv.h"

#include "tests/nn/random_weights.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace saker::nn {
namespace {

using ::testing::ElementsAre;

std::vector<float> numbers(const mx::array& array) {
  mx::array dense = mx::contiguous(array);
  mx::eval(dense);
  return {dense.data<float>(), dense.data<float>() + dense.size()};
}

cache::SequenceCache make_cache() {
  std::vector<std::unique_ptr<cache::LayerCache>> layers;
  layers.push_back(std::make_unique<cache::KVCache>(kernels::KvShape{1, 4, 4, mx::float32}));
  return cache::SequenceCache(std::move(layers));
}

// Two taps over rows of two elements, one group: the input's kernels are 1, 10 and 2, 20, the
// output's 3, 30 and 4, 40; the dynamic part of the input's first tap is the row's first element,
// that of the output's second tap its second element.
TEST(DynamicConv, SpansByHand) {
  TensorMap tensors;
  tensors["base_kernel"] = float_tensor({2, 2, 2}, {1, 10, 2, 20, 3, 30, 4, 40});
  tensors["kernel_projection.weight"] = float_tensor({4, 2}, {1, 0, 0, 0, 0, 0, 0, 1});
  const DynamicConv conv(Weights(tensors, {}), {.hidden = 2, .taps = 2, .group = 2});
  auto first = make_cache();
  auto second = make_cache();
  const ForwardContext context({{&first, 2}, {&second, 1}});
  const std::vector<float> x = {1, 2, 3, 4, 5, 6};
  const auto prepared = conv.prepare(mx::array(x.data(), {3, 2}, mx::float32), context);
  // Row 1: (1 + 3) * 3 + 2 * 1 and (10 + 3) * 4 + 20 * 2. Row 2 begins a span.
  EXPECT_THAT(numbers(prepared.rows), ElementsAre(2, 22, 14, 92, 30, 90));
  const mx::array ones = mx::ones({3, 2});
  // Row 1: 3 + (4 + 4) and 30 + (40 + 4).
  EXPECT_THAT(
      numbers(conv.finish(ones, prepared.dynamic, context)), ElementsAre(3, 30, 11, 74, 3, 30)
  );
}

constexpr DynamicConvOptions kSizes{.hidden = 12, .taps = 3, .group = 4};
constexpr int kGroups = 3;

// The formula, in double.
std::vector<float> naive(
    const std::vector<float>& x,
    const std::vector<float>& base,
    const std::vector<float>& dynamic,
    const std::vector<int>& starts
) {
  std::vector<float> result;
  for (std::size_t row = 0; row < starts.size(); ++row) {
    for (int element = 0; element < kSizes.hidden; ++element) {
      double sum = 0.0;
      const int reach = std::min(kSizes.taps, static_cast<int>(row) - starts[row] + 1);
      for (int i = 0; i < reach; ++i) {
        const int from = static_cast<int>(row) - i;
        const int own =
            (static_cast<int>(row) * kSizes.taps + i) * kGroups + element / kSizes.group;
        const double kernel = static_cast<double>(base.at(i * kSizes.hidden + element)) +
                              static_cast<double>(dynamic.at(own));
        sum += kernel * x.at(from * kSizes.hidden + element);
      }
      result.push_back(static_cast<float>(sum));
    }
  }
  return result;
}

TEST(DynamicConv, IsItsFormula) {
  RandomWeights random({.kind = kernels::WeightKind::kFloat32}, 3);
  random.add_tensor("base_kernel", {2, kSizes.taps, kSizes.hidden});
  random.add_linear("kernel_projection", 2 * kSizes.taps * kGroups, kSizes.hidden);
  const Weights weights(random.tensors(), {});
  const DynamicConv conv(weights, kSizes);
  auto first = make_cache();
  auto second = make_cache();
  auto third = make_cache();
  const ForwardContext context({{&first, 4}, {&second, 1}, {&third, 2}});
  const std::vector<int> starts = {0, 0, 0, 0, 4, 5, 5};
  const mx::array x = mx::sin(mx::reshape(mx::arange(7.0 * kSizes.hidden), {7, kSizes.hidden}));
  const auto prepared = conv.prepare(x, context);
  const auto base = mx::reshape(
      weights.array("base_kernel", {2, kSizes.taps, kSizes.hidden}),
      {2, kSizes.taps * kSizes.hidden}
  );
  const auto projected =
      mx::matmul(x, mx::transpose(weights.array("kernel_projection.weight", {18, kSizes.hidden})));
  const auto halves = mx::split(projected, 2, 1);
  const auto expect_near = [](const std::vector<float>& got, const std::vector<float>& expected) {
    ASSERT_EQ(got.size(), expected.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      EXPECT_NEAR(got[i], expected[i], 1e-4) << i;
    }
  };
  expect_near(
      numbers(prepared.rows),
      naive(numbers(x), numbers(mx::take(base, 0, 0)), numbers(halves[0]), starts)
  );
  expect_near(
      numbers(conv.finish(x, prepared.dynamic, context)),
      naive(numbers(x), numbers(mx::take(base, 1, 0)), numbers(halves[1]), starts)
  );
}

}  // namespace
}  // namespace saker::nn
