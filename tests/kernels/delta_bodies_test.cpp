// SPDX-License-Identifier: Apache-2.0
// The gated delta rule, with a decay per row or per key, in every instruction set against float64, without MLX.
#include "saker/kernels/cpu/dispatch/delta_bodies.h"

#include "saker/kernels/cpu/dispatch/dispatch.h"

#include "tests/kernels/instruction_sets.h"
#include "tests/kernels/random_floats.h"
#include "tests/kernels/same_bits.h"
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

namespace saker::kernels {
namespace {

constexpr int kRows = 9;

class DeltaBodiesTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { select_kernel_table(GetParam()); }

  static const DeltaBodies& bodies() { return *kernel_table().delta; }
};

INSTANTIATE_TEST_SUITE_P(
    Sets,
    DeltaBodiesTest,
    testing::ValuesIn(instruction_sets()),
    [](const auto& set) { return set.param; }
);

// Random rows of one head, and its state before them.
struct Head {
  Head(int key_dim, int value_dim, bool decays_keys = false)
      : keys(key_dim),
        values(value_dim),
        by_key(decays_keys),
        before(normal_floats(size(key_dim, value_dim), 1)),
        q(normal_floats(size(kRows, stride()), 2, 0.3F)),
        k(normal_floats(size(kRows, stride()), 3, 0.3F)),
        v(normal_floats(size(kRows, stride()), 4)),
        decay(normal_floats(size(kRows, key_dim), 5)),
        beta(normal_floats(kRows, 6)) {
    for (float& factor : decay) {
      factor = std::exp(-std::abs(factor));
    }
    for (int row = 0; row < kRows; ++row) {
      beta[row] = 1 / (1 + std::exp(-beta[row]));
    }
  }

  static std::size_t size(int rows, int width) { return static_cast<std::size_t>(rows) * width; }

  int stride() const { return keys + values + 3; }

  // Rows [first, first + count) from one state to another.
  void run(
      const DeltaBodies& bodies,
      int first,
      int count,
      const std::vector<float>& from,
      std::vector<float>& to,
      std::vector<float>& out
  ) const {
    const std::ptrdiff_t at = std::ptrdiff_t{first} * stride();
    std::vector<float> scratch(size(keys, kDeltaColumns));
    bodies.run_head({
        .from = from.data(),
        .to = to.data(),
        .scratch = scratch.data(),
        .key_dim = keys,
        .value_dim = values,
        .rows = count,
        .q = q.data() + at,
        .k = k.data() + at,
        .v = v.data() + at,
        .stride = stride(),
        .decay = decay.data() + first,
        .beta = beta.data() + first,
        .gate_stride = 1,
        .out = out.data() + std::ptrdiff_t{first} * values,
        .out_stride = values,
        .key_decays = by_key ? decay.data() + std::ptrdiff_t{first} * keys : nullptr,
        .key_decay_stride = keys,
    });
  }

  double decay_of(int row, int key) const { return decay[by_key ? row * keys + key : row]; }

  // The rule in float64, into `state` and `out`.
  void truth(std::vector<double>& state, std::vector<double>& out) const {
    for (int row = 0; row < kRows; ++row) {
      for (int j = 0; j < values; ++j) {
        double known = 0;
        for (int i = 0; i < keys; ++i) {
          known += decay_of(row, i) * state[i * values + j] * k[row * stride() + i];
        }
        const double news = (v[row * stride() + j] - known) * beta[row];
        double read = 0;
        for (int i = 0; i < keys; ++i) {
          double& at = state[i * values + j];
          at = decay_of(row, i) * at + k[row * stride() + i] * news;
          read += at * q[row * stride() + i];
        }
        out[row * values + j] = read;
      }
    }
  }

  int keys;
  int values;
  bool by_key;
  std::vector<float> before;
  std::vector<float> q;
  std::vector<float> k;
  std::vector<float> v;
  std::vector<float> decay;
  std::vector<float> beta;
};

TEST_P(DeltaBodiesTest, StatesAndRowsAreNearTheTruth) {
  using Sizes = std::tuple<int, int, bool>;
  for (const auto& [keys, values, by_key] :
       {Sizes(16, 64, false), {10, 22, true}, {7, 96, false}, {1, 1, true}, {128, 80, true}}) {
    const Head head(keys, values, by_key);
    std::vector<float> after(head.before.size());
    std::vector<float> out(Head::size(kRows, values));
    head.run(bodies(), 0, kRows, head.before, after, out);
    std::vector<double> state(head.before.begin(), head.before.end());
    std::vector<double> expected(out.size());
    head.truth(state, expected);
    for (std::size_t i = 0; i < out.size(); ++i) {
      ASSERT_NEAR(out[i], expected[i], 1e-4 * (1 + std::abs(expected[i]))) << keys << ' ' << values;
    }
    for (std::size_t i = 0; i < after.size(); ++i) {
      ASSERT_NEAR(after[i], state[i], 1e-4 * (1 + std::abs(state[i])));
    }
  }
}

void expect_that_cuts_change_no_bit(const DeltaBodies& bodies, const Head& head) {
  std::vector<float> after(head.before.size());
  std::vector<float> out(Head::size(kRows, head.values));
  head.run(bodies, 0, kRows, head.before, after, out);
  for (const int step : {1, 2, 4}) {
    std::vector<float> from = head.before;
    std::vector<float> to(from.size());
    std::vector<float> rows(out.size());
    for (int first = 0; first < kRows; first += step) {
      head.run(bodies, first, std::min(step, kRows - first), from, to, rows);
      from = to;
    }
    EXPECT_TRUE(same_bits(rows.data(), out.data(), out.size())) << step;
    EXPECT_TRUE(same_bits(to.data(), after.data(), after.size())) << step;
  }
}

TEST_P(DeltaBodiesTest, CutsChangeNoBit) {
  expect_that_cuts_change_no_bit(bodies(), Head(24, 90));
  expect_that_cuts_change_no_bit(bodies(), Head(24, 90, /*decays_keys=*/true));
}

TEST_P(DeltaBodiesTest, DecaysAreNearTheTruth) {
  for (const float scale : {0.1F, 3.0F, 60.0F}) {
    const auto steps = normal_floats(70, 1, scale);
    const auto bias = normal_floats(70, 2);
    std::vector<float> out(70);
    bodies().decay({steps.data(), bias.data(), 1.7F, out.data()}, 70);
    for (std::size_t i = 0; i < out.size(); ++i) {
      const double x = static_cast<double>(steps[i] + bias[i]);
      const double soft = std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));
      const double expected = std::exp(-1.7 * soft);
      ASSERT_NEAR(out[i], expected, 1e-6 * expected * (1 + soft) + 1e-37) << x;
    }
    bodies().decay({steps.data(), bias.data(), 1.7F, out.data(), -5.0F}, 70);
    for (std::size_t i = 0; i < out.size(); ++i) {
      const double x = static_cast<double>(steps[i] + bias[i]);
      ASSERT_NEAR(out[i], std::exp(-5.0 / (1 + std::exp(-1.7 * x))), 3e-6) << x;
    }
  }
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<float> steps{inf, -inf, std::numeric_limits<float>::quiet_NaN()};
  const std::vector<float> bias(3);
  std::vector<float> out(3);
  bodies().decay({steps.data(), bias.data(), 1.0F, out.data()}, 3);
  EXPECT_EQ(out[0], 0.0F);
  EXPECT_EQ(out[1], 1.0F);
  EXPECT_TRUE(std::isnan(out[2]));
}

TEST_P(DeltaBodiesTest, ConvolutionsAndNormsAreNearTheTruth) {
  for (const int width : {1, 16, 37, 130}) {
    const auto count = static_cast<std::size_t>(width);
    const auto inputs = normal_floats(4 * count, 1);
    const auto weights = normal_floats(4 * count, 2);
    const float* rows[4];
    for (int tap = 0; tap < 4; ++tap) {
      rows[tap] = inputs.data() + static_cast<std::size_t>(tap) * count;
    }
    std::vector<float> out(count);
    bodies().convolve({rows, weights.data(), width, 4, out.data()}, width);
    double squares = 0;
    for (std::size_t i = 0; i < count; ++i) {
      double sum = 0;
      for (int tap = 0; tap < 4; ++tap) {
        sum += static_cast<double>(rows[tap][i]) * weights[tap * count + i];
      }
      ASSERT_NEAR(out[i], sum / (1 + std::exp(-sum)), 1e-5);
      squares += static_cast<double>(out[i]) * out[i];
    }
    std::vector<float> normal = out;
    bodies().normalize(normal.data(), width, 1e-6F, 0.25F);
    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_NEAR(normal[i], out[i] * 0.25 / std::sqrt(squares + 1e-6), 1e-6);
    }
  }
}

}  // namespace
}  // namespace saker::kernels
