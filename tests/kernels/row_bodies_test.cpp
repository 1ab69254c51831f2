// SPDX-License-Identifier: Apache-2.0
// Norms, rope and curves in every instruction set against float64, without MLX.
#include "saker/kernels/cpu/dispatch/row_bodies.h"

#include "saker/kernels/cpu/dispatch/dispatch.h"

#include "tests/kernels/instruction_sets.h"
#include "tests/kernels/random_floats.h"
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

namespace saker::kernels {
namespace {

class RowBodiesTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { select_kernel_table(GetParam()); }

  static const RowBodies& bodies() { return *kernel_table().rows; }
};

INSTANTIATE_TEST_SUITE_P(
    Sets,
    RowBodiesTest,
    testing::ValuesIn(instruction_sets()),
    [](const auto& set) { return set.param; }
);

TEST_P(RowBodiesTest, NormsAreNearTheTruth) {
  for (const int width : {1, 15, 16, 17, 64, 100, 257, 1000}) {
    const auto count = static_cast<std::size_t>(width);
    const auto x = normal_floats(count, 1);
    const auto residual = normal_floats(count, 2);
    const auto weight = normal_floats(count, 3);
    std::vector<float> sum(count);
    std::vector<float> normed(count);
    const NormRow row{x.data(), residual.data(), weight.data(), sum.data(), normed.data(), 0.5F};
    bodies().rms_norm(row, width, 1e-5F);
    double squares = 0;
    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_EQ(sum[i], (x[i] + residual[i]) * 0.5F);
      squares += static_cast<double>(sum[i]) * sum[i];
    }
    const double factor = 1 / std::sqrt(squares / width + 1e-5);
    for (std::size_t i = 0; i < count; ++i) {
      const double expected = sum[i] * factor * weight[i];
      ASSERT_NEAR(normed[i], expected, std::abs(expected) * 1e-6) << width;
    }
  }
}

TEST_P(RowBodiesTest, LayerNormsAreNearTheTruth) {
  for (const int width : {1, 15, 16, 17, 64, 100, 257, 1000}) {
    const auto count = static_cast<std::size_t>(width);
    const auto x = normal_floats(count, 1);
    const auto weight = normal_floats(count, 2);
    const auto bias = normal_floats(count, 3);
    auto normed = normal_floats(count, 4);  // Is the residual, too.
    const auto residual = normed;
    std::vector<float> sum(count);
    const NormRow row{
        x.data(), normed.data(), weight.data(), sum.data(), normed.data(), 0.5F, 3.0F, bias.data()
    };
    bodies().layer_norm(row, width, 1e-5F);
    double mean = 0;
    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_EQ(sum[i], (x[i] + residual[i] * 3.0F) * 0.5F);
      mean += static_cast<double>(sum[i]) / width;
    }
    double squares = 0;
    for (const float value : sum) {
      squares += (value - mean) * (value - mean);
    }
    const double factor = 1 / std::sqrt(squares / width + 1e-5);
    for (std::size_t i = 0; i < count; ++i) {
      const double expected = (sum[i] - mean) * factor * weight[i] + bias[i];
      ASSERT_NEAR(normed[i], expected, 1e-5) << width;
    }
  }
}

TEST_P(RowBodiesTest, RopeRotatesPairs) {
  for (const int half : {1, 8, 16, 21, 64}) {
    const int width = 2 * half + half / 2;
    const auto x = normal_floats(static_cast<std::size_t>(width), 1);
    const auto angles = normal_floats(static_cast<std::size_t>(half), 2);
    std::vector<float> cos;
    std::vector<float> sin;
    for (const float angle : angles) {
      cos.push_back(std::cos(angle));
      sin.push_back(std::sin(angle));
    }
    std::vector<float> out(x.size());
    bodies().rope({x.data(), cos.data(), sin.data(), out.data()}, half, width);
    for (int i = 0; i < half; ++i) {
      ASSERT_EQ(out[i], x[i] * cos[i] - x[half + i] * sin[i]);
      ASSERT_EQ(out[half + i], x[half + i] * cos[i] + x[i] * sin[i]);
    }
    for (int i = 2 * half; i < width; ++i) {
      ASSERT_EQ(out[i], x[i]);
    }
    auto turned = x;
    bodies().rope_neighbours({turned.data(), cos.data(), sin.data(), turned.data()}, half, width);
    for (int i = 0; i < half; ++i) {
      ASSERT_EQ(turned[2 * i], x[2 * i] * cos[i] - x[2 * i + 1] * sin[i]);
      ASSERT_EQ(turned[2 * i + 1], x[2 * i + 1] * cos[i] + x[2 * i] * sin[i]);
    }
    for (int i = 2 * half; i < width; ++i) {
      ASSERT_EQ(turned[i], x[i]);
    }
  }
}

double logistic(double x) {
  return 1 / (1 + std::exp(-x));
}

TEST_P(RowBodiesTest, CurvesAreNearTheTruth) {
  struct Curve {
    void (*run)(const GatedRow& row, int width);
    double (*truth)(double x);
  };

  const Curve curves[] = {
      {bodies().gated_logistic, logistic},
      {bodies().gated_silu, [](double x) { return x * logistic(x); }},
      {bodies().gated_gelu_tanh,
       [](double x) {
         return x * logistic(2 * std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x));
       }},
      {bodies().gated_gelu, [](double x) { return x * 0.5 * std::erfc(-x / std::sqrt(2.0)); }},
  };
  std::vector<float> gate = {0.0F, -0.0F};
  for (int i = -2000; i <= 2000; ++i) {
    gate.push_back(static_cast<float>(i) * 0.01F);
    gate.push_back(static_cast<float>(i) * 1e-5F);
  }
  const std::vector<float> up(gate.size(), 2.0F);
  std::vector<float> out(gate.size());
  for (const Curve& curve : curves) {
    curve.run({gate.data(), up.data(), out.data()}, static_cast<int>(gate.size()));
    for (std::size_t i = 0; i < gate.size(); ++i) {
      const double expected = 2 * curve.truth(gate[i]);
      // Exponents lose bits as they grow: the argument's rounding is multiplied by its size.
      const double limit = std::abs(expected) * (1e-6 + 1.2e-7 * gate[i] * gate[i]);
      ASSERT_NEAR(out[i], expected, limit + 1e-36) << gate[i];
    }
    std::vector<float> in_place = gate;
    curve.run({in_place.data(), up.data(), in_place.data()}, static_cast<int>(gate.size()));
    EXPECT_EQ(in_place, out);
  }
  std::vector<float> capped(gate.size());
  bodies().softcap(gate.data(), 5.0F, capped.data(), static_cast<int>(gate.size()));
  for (std::size_t i = 0; i < gate.size(); ++i) {
    const double expected = 5 * std::tanh(gate[i] / 5.0);
    ASSERT_NEAR(capped[i], expected, std::abs(expected) * 1e-6) << gate[i];
  }
}

}  // namespace
}  // namespace saker::kernels
