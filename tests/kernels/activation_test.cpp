// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/ops/activation.h"

#include "saker/base/error.h"
#include "saker/kernels/gpu/backend.h"

#include "tests/kernels/attend_runs.h"
#include "tests/kernels/instruction_sets.h"
#include "tests/kernels/saved_machine.h"
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <new>
#include <vector>

namespace saker::kernels {
namespace {

class ActivationTest : public InstructionSetTest {};

INSTANTIATE_TEST_SUITE_P(
    Sets,
    ActivationTest,
    testing::ValuesIn(instruction_sets()),
    [](const auto& set) { return set.param; }
);

double true_activation(double x, Activation activation) {
  switch (activation) {
    case Activation::kLogistic:
      return 1 / (1 + std::exp(-x));
    case Activation::kSilu:
      return x / (1 + std::exp(-x));
    case Activation::kGeluTanh:
      return x / (1 + std::exp(-2 * std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x)));
    case Activation::kGelu:
      return x * 0.5 * std::erfc(-x / std::sqrt(2.0));
    case Activation::kRelu2:
      return x > 0 ? x * x : 0;
    case Activation::kSoftplus:
      return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x));
    case Activation::kSwigluOai:
    case Activation::kXielu:
      break;  // These have tests of their own.
  }
  return 0;
}

constexpr Activation kAll[] = {
    Activation::kLogistic,
    Activation::kSilu,
    Activation::kGeluTanh,
    Activation::kGelu,
    Activation::kRelu2,
    Activation::kSoftplus,
};

// Points between -20 and 20, dense near 0.
std::vector<float> points() {
  std::vector<float> x;
  for (int i = -2000; i <= 2000; ++i) {
    x.push_back(static_cast<float>(i) * 0.01F);
    x.push_back(static_cast<float>(i) * 1e-5F);
  }
  return x;
}

TEST_P(ActivationTest, AreNearTheTruth) {
  const auto x = points();
  const int count = static_cast<int>(x.size());
  const auto merged =
      mx::concatenate({mx::array(x.data(), {1, count}), mx::full({1, count}, 2.0F)}, 1);
  for (const Activation activation : kAll) {
    const auto got = floats_of(gated_activation(merged, activation));
    for (int i = 0; i < count; ++i) {
      const double expected = 2 * true_activation(x[i], activation);
      // Exponents lose bits as they grow: the argument's rounding is multiplied by its size.
      const double limit = std::abs(expected) * (1e-6 + 1.2e-7 * x[i] * x[i]);
      EXPECT_NEAR(got[i], expected, limit + 1e-36) << x[i] << " " << static_cast<int>(activation);
    }
  }
}

TEST_P(ActivationTest, AgreeWithTheReference) {
  for (const int width : {1, 7, 16, 100, 5000}) {
    const auto merged = mx::random::normal({5, 2 * width}, mx::float32, mx::random::key(width));
    for (const Activation activation : kAll) {
      const auto got = gated_activation(merged, activation);
      const auto reference = gated_activation_reference(merged, activation);
      EXPECT_TRUE(mx::allclose(got, reference, 1e-5, 2e-6).item<bool>()) << width;
    }
  }
}

// Gate and up as parts of wider heads.
TEST_P(ActivationTest, PairsAreTheMergedOnes) {
  const auto heads = mx::random::normal({5, 3, 80}, mx::float32, mx::random::key(7));
  const auto gate = mx::slice(heads, {0, 0, 0}, {5, 3, 40});
  const auto up = mx::slice(heads, {0, 0, 40}, {5, 3, 80});
  const auto merged = mx::reshape(heads, {15, 80});
  for (const Activation activation : kAll) {
    EXPECT_EQ(
        floats_of(gated_activation(gate, up, activation)),
        floats_of(gated_activation(merged, activation))
    );
  }
}

// A gate and an up, and what they give.
struct Swiglu {
  float gate;
  float up;
  double expected;
};

TEST_P(ActivationTest, GatesAndUpsOfSwigluOaiAreLimited) {
  const auto share = [](double gate) { return gate / (1 + std::exp(-1.702 * gate)); };
  const float nan = std::nanf("");
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<Swiglu> cases = {
      {1.5F, 0.25F, share(1.5) * 1.25},
      {-2.0F, -3.0F, share(-2.0) * -2.0},
      {9.0F, 1.0F, share(7.0) * 2.0},
      {inf, 1.0F, share(7.0) * 2.0},
      {-9.0F, 1.0F, share(-9.0) * 2.0},
      {1.0F, 8.0F, share(1.0) * 8.0},
      {1.0F, -inf, share(1.0) * -6.0},
      {nan, 1.0F, std::nan("")},
      {1.0F, nan, std::nan("")},
  };
  std::vector<float> merged;
  for (const auto member : {&Swiglu::gate, &Swiglu::up}) {
    for (const Swiglu& of : cases) {
      merged.push_back(of.*member);
    }
  }
  const int count = static_cast<int>(cases.size());
  const mx::array rows(merged.data(), {1, 2 * count});
  const auto got = floats_of(gated_activation(rows, Activation::kSwigluOai));
  const auto reference = floats_of(gated_activation_reference(rows, Activation::kSwigluOai));
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const double expected = cases[i].expected;
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(got[i]) && std::isnan(reference[i])) << i;
    } else {
      EXPECT_NEAR(got[i], expected, 4e-6 * std::abs(expected)) << i;
      EXPECT_NEAR(reference[i], expected, 4e-6 * std::abs(expected)) << i;
    }
  }
}

TEST_P(ActivationTest, ExtremesAreQuiet) {
  const float inf = std::numeric_limits<float>::infinity();
  const float gates[] = {-1e30F, -200.0F, 200.0F, 1e30F, inf, std::nanf("")};
  const auto merged = mx::concatenate({mx::array(gates, {1, 6}), mx::ones({1, 6})}, 1);
  for (const Activation activation : kAll) {
    const auto got = floats_of(gated_activation(merged, activation));
    const bool bounded = activation == Activation::kLogistic;
    const bool squared = activation == Activation::kRelu2;
    EXPECT_EQ(got[0], 0.0F);
    EXPECT_NEAR(got[1], 0.0F, 1e-36F);
    EXPECT_EQ(got[2], bounded ? 1.0F : squared ? 40000.0F : 200.0F);
    EXPECT_EQ(got[3], bounded ? 1.0F : squared ? inf : 1e30F);
    EXPECT_EQ(got[4], bounded ? 1.0F : inf);
    EXPECT_TRUE(std::isnan(got[5]));
  }
}

TEST_P(ActivationTest, RowsAreIndependent) {
  const auto merged = mx::random::normal({50, 600}, mx::float32, mx::random::key(4));
  for (const Activation activation : kAll) {
    set_threads(4);
    const auto together = floats_of(gated_activation(merged, activation));
    for (const int row : {0, 31, 49}) {
      const auto alone =
          floats_of(gated_activation(mx::slice(merged, {row, 0}, {row + 1, 600}), activation));
      const std::vector<float> expected(
          together.begin() + row * 300, together.begin() + (row + 1) * 300
      );
      EXPECT_EQ(alone, expected) << row;
    }
  }
}

TEST_P(ActivationTest, XieluIsNearTheTruth) {
  const auto factors = xielu_factors(0.3F, -0.7F, 0.5F, -1e-6F);
  EXPECT_NEAR(factors.positive, std::log1p(std::exp(0.3)), 1e-6);
  EXPECT_NEAR(factors.negative, 0.5 + std::log1p(std::exp(-0.7)), 1e-6);
  const auto x = points();
  const int count = static_cast<int>(x.size());
  const mx::array rows(x.data(), {1, count});
  const auto got = floats_of(xielu(rows, factors));
  const auto reference = floats_of(xielu_reference(rows, factors));
  for (int i = 0; i < count; ++i) {
    const double value = x[i];
    const double curve = value > 0
                             ? factors.positive * value * value
                             : factors.negative * (std::expm1(std::min(value, -1e-6)) - value);
    const double expected = curve + 0.5 * value;
    const double limit = 1e-6 * std::abs(value) + 3e-7 * std::abs(expected) + 1e-9;
    EXPECT_NEAR(got[i], expected, limit) << value;
    EXPECT_NEAR(reference[i], expected, limit) << value;
  }
  const auto three = mx::random::normal({3, 5000}, mx::float32, mx::random::key(5));
  const auto together = floats_of(xielu(three, factors));
  const auto alone = floats_of(xielu(mx::slice(three, {1, 0}, {2, 5000}), factors));
  EXPECT_EQ(alone, std::vector<float>(together.begin() + 5000, together.begin() + 10000));
  const float nan[] = {std::nanf("")};
  EXPECT_TRUE(std::isnan(floats_of(xielu(mx::array(nan, {1, 1}), factors))[0]));
}

TEST_P(ActivationTest, SoftcapIsNearTheTruth) {
  const auto x = points();
  const int count = static_cast<int>(x.size());
  for (const float cap : {1.0F, 30.0F}) {
    const auto got = floats_of(softcap(mx::array(x.data(), {1, count}), cap));
    for (int i = 0; i < count; ++i) {
      const double expected = cap * std::tanh(static_cast<double>(x[i]) / cap);
      EXPECT_NEAR(got[i], expected, std::abs(expected) * 5e-7) << x[i];
    }
  }
  const float inf = std::numeric_limits<float>::infinity();
  const float ends[] = {inf, -inf, std::nanf("")};
  const auto got = floats_of(softcap(mx::array(ends, {3}), 5.0F));
  EXPECT_EQ(got[0], 5.0F);
  EXPECT_EQ(got[1], -5.0F);
  EXPECT_TRUE(std::isnan(got[2]));
}

TEST(ActivationChecksTest, WrongCallsAreErrors) {
  EXPECT_THROW(gated_activation(mx::zeros({2, 7}), Activation::kSilu), Error);
  EXPECT_THROW(gated_activation(mx::zeros({8}), Activation::kSilu), Error);
  EXPECT_THROW(
      gated_activation(mx::zeros({2, 3, 4}), mx::zeros({2, 3, 5}), Activation::kSilu), Error
  );
  EXPECT_THROW(softcap(mx::zeros({8}), 0.0F), Error);
  EXPECT_THROW(softcap(mx::zeros({8}), std::nanf("")), Error);
}

// No machine has so many addresses.
TEST(Activation, AResultWithoutMemoryIsAnError) {
  const auto x = mx::broadcast_to(mx::array(1.0F), {1 << 30, 1 << 26});
  EXPECT_THROW(mx::eval(gated_activation(x, Activation::kSilu)), std::bad_alloc);
}

}  // namespace
}  // namespace saker::kernels
