// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/gpu/backend.h"
#include "saker/kernels/ops/activation.h"
#include "saker/kernels/ops/norm.h"

#include "tests/kernels/attend_runs.h"
#include "tests/kernels/instruction_sets.h"
#include "tests/kernels/same_bits.h"
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <vector>

namespace saker::kernels {
namespace {

constexpr float kNormEps = 1e-5F;

mx::array normal(const mx::Shape& shape, std::uint64_t seed) {
  return mx::random::normal(shape, mx::float32, mx::random::key(seed));
}

// Runs each test with every instruction set.
class LayerNormTest : public InstructionSetTest {};

INSTANTIATE_TEST_SUITE_P(
    Sets,
    LayerNormTest,
    ::testing::ValuesIn(instruction_sets()),
    [](const auto& set) { return set.param; }
);

TEST_P(LayerNormTest, AgreesWithFloat64AndTheReference) {
  for (const int width : {1, 5, 16, 63, 64, 65, 384, 1025}) {
    // A mean far from 0, which a single pass over the squares would not survive.
    const auto x = normal({7, width}, 1) + mx::array(100.0F);
    const auto weight = normal({width}, 2);
    const auto bias = normal({width}, 3);
    const NormParts parts{NormKind::kLayer, weight, bias, kNormEps};
    const auto got = norm(x, parts);
    const auto in = floats_of(x);
    const auto out = floats_of(got);
    const auto factors = floats_of(weight);
    const auto offsets = floats_of(bias);
    const auto size = static_cast<std::size_t>(width);
    for (std::size_t row = 0; row < 7; ++row) {
      const float* from = &in[row * size];
      double mean = 0.0;
      for (std::size_t i = 0; i < size; ++i) {
        mean += static_cast<double>(from[i]) / width;
      }
      double variance = 0.0;
      for (std::size_t i = 0; i < size; ++i) {
        variance += (from[i] - mean) * (from[i] - mean) / width;
      }
      for (std::size_t i = 0; i < size; ++i) {
        const double scaled = (from[i] - mean) / std::sqrt(variance + kNormEps);
        EXPECT_NEAR(out[row * size + i], scaled * factors[i] + offsets[i], 2e-4) << width;
      }
    }
    // The reference's mean loses digits where it is far from 0.
    const auto centred = normal({7, width}, 1);
    const auto reference = norm_reference(centred, parts);
    EXPECT_TRUE(mx::allclose(norm(centred, parts), reference, 1e-5, 1e-5).item<bool>()) << width;
  }
}

TEST_P(LayerNormTest, RowsAreIndependent) {
  const auto x = normal({300, 200}, 8);
  const auto residual = normal({300, 200}, 9);
  const auto weight = normal({200}, 10);
  const auto bias = normal({200}, 11);
  set_threads(3);
  const NormParts parts{NormKind::kLayer, weight, bias, kNormEps};
  const auto together = norm_residual(x, residual, parts);
  const auto normed = floats_of(together.normed);
  EXPECT_EQ(floats_of(together.sum), floats_of(x + residual));
  for (const int row : {0, 1, 17, 299}) {
    const auto cut = [&](const mx::array& rows) {
      return mx::slice(rows, {row, 0}, {row + 1, 200});
    };
    const auto alone = floats_of(norm_residual(cut(x), cut(residual), parts).normed);
    EXPECT_TRUE(same_bits(alone.data(), &normed[static_cast<std::size_t>(row) * 200], 200)) << row;
    EXPECT_EQ(floats_of(norm(cut(x + residual), parts)), alone) << row;
  }
}

TEST_P(LayerNormTest, ActivationsWithoutAGate) {
  const auto x = normal({9, 2100}, 12);
  for (const Activation kind : {Activation::kGelu, Activation::kGeluTanh, Activation::kSilu}) {
    const auto got = activation(x, kind);
    EXPECT_TRUE(mx::allclose(got, activation_reference(x, kind), 1e-5, 1e-6).item<bool>());
    const auto merged = mx::concatenate({x, mx::ones(x.shape(), mx::float32)}, 1);
    EXPECT_EQ(floats_of(got), floats_of(gated_activation(merged, kind)));
  }
}

}  // namespace
}  // namespace saker::kernels
