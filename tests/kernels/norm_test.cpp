// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/ops/norm.h"

#include "saker/base/error.h"
#include "saker/kernels/gpu/backend.h"

#include "tests/kernels/attend_runs.h"
#include "tests/kernels/instruction_sets.h"
#include "tests/kernels/same_bits.h"
#include "tests/kernels/saved_machine.h"
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace saker::kernels {
namespace {

constexpr float kEps = 1e-6F;

mx::array random(const mx::Shape& shape, std::uint64_t seed) {
  return mx::random::normal(shape, mx::float32, mx::random::key(seed));
}

// Runs each test with every instruction set.
class NormTest : public InstructionSetTest {};

INSTANTIATE_TEST_SUITE_P(
    Sets, NormTest, testing::ValuesIn(instruction_sets()), [](const auto& set) { return set.param; }
);

// y in float64 within a few units in the last place.
void expect_normed(const mx::array& x, const mx::array& weight, const mx::array& got) {
  const auto in = floats_of(x);
  const auto scale = floats_of(weight);
  const auto out = floats_of(got);
  const std::size_t width = scale.size();
  for (std::size_t row = 0; row < in.size() / width; ++row) {
    double sum = 0;
    for (std::size_t i = 0; i < width; ++i) {
      sum += static_cast<double>(in[row * width + i]) * in[row * width + i];
    }
    const double factor = 1 / std::sqrt(sum / static_cast<double>(width) + kEps);
    for (std::size_t i = 0; i < width; ++i) {
      const double expected = in[row * width + i] * factor * scale[i];
      EXPECT_NEAR(out[row * width + i], expected, std::abs(expected) * 6e-7 + 1e-30);
    }
  }
}

TEST_P(NormTest, AgreesWithFloat64AndTheReference) {
  for (const int width : {1, 5, 16, 63, 64, 65, 128, 1024, 2561}) {
    const auto x = random({7, width}, width);
    const auto weight = random({width}, width + 1);
    const auto got = rms_norm(x, weight, kEps);
    expect_normed(x, weight, got);
    const auto reference = rms_norm_reference(x, weight, kEps);
    EXPECT_TRUE(mx::allclose(got, reference, 1e-5, 1e-6).item<bool>()) << width;
  }
}

TEST_P(NormTest, LayerNormAgreesWithTheReference) {
  for (const int width : {1, 5, 16, 63, 65, 1024}) {
    const auto x = random({7, width}, width) + mx::array(3.0F);
    NormParts parts{.kind = NormKind::kLayer, .weight = random({width}, width + 1), .eps = kEps};
    for (const bool biased : {false, true}) {
      if (biased) {
        parts.bias = random({width}, width + 2);
      }
      const auto expected = norm_reference(x, parts);
      EXPECT_TRUE(mx::allclose(norm(x, parts), expected, 1e-4, 1e-4).item<bool>()) << width;
      const ResidualScales scales{.sum = 0.75F, .residual = 0.3F};
      const auto got = norm_residual(x, x, parts, scales);
      const auto sum = (x + x * mx::array(0.3F)) * mx::array(0.75F);
      EXPECT_EQ(floats_of(got.sum), floats_of(sum));
      EXPECT_EQ(floats_of(got.normed), floats_of(norm(sum, parts)));
    }
  }
}

TEST(NormPlain, LayerNormsOfBf16KeepTheirDtype) {
  const auto x = mx::astype(random({5, 40}, 30), mx::bfloat16);
  const NormParts parts{
      .kind = NormKind::kLayer, .weight = random({40}, 31), .bias = random({40}, 32), .eps = kEps
  };
  const auto got = norm(x, parts);
  EXPECT_EQ(got.dtype(), mx::bfloat16);
  EXPECT_TRUE(mx::allclose(got, norm_reference(x, parts), 0.03, 0.03).item<bool>());
  const auto sum = add_residual(random({5, 40}, 33), x, {.residual = 0.5F});
  EXPECT_EQ(sum.sum.dtype(), mx::float32);
  EXPECT_EQ(sum.normed.dtype(), mx::bfloat16);
}

TEST_P(NormTest, RowsOfHeadsMayHaveGaps) {
  const auto joined = random({6, 80}, 3);
  const auto weight = random({16}, 4);
  const auto heads = mx::reshape(mx::slice(joined, {0, 16}, {6, 64}), {6, 3, 16});
  const auto dense = mx::contiguous(heads);
  EXPECT_EQ(floats_of(rms_norm(heads, weight, kEps)), floats_of(rms_norm(dense, weight, kEps)));
  const auto turned = mx::transpose(random({16, 6}, 5));
  EXPECT_EQ(
      floats_of(rms_norm(turned, weight, kEps)),
      floats_of(rms_norm(mx::contiguous(turned), weight, kEps))
  );
  const auto deep = random({2, 3, 4, 16}, 6);
  EXPECT_EQ(rms_norm(deep, weight, kEps).shape(), deep.shape());
  expect_normed(deep, weight, rms_norm(deep, weight, kEps));
}

TEST_P(NormTest, RowsAreIndependent) {
  const auto x = random({300, 200}, 8);
  const auto residual = random({300, 200}, 9);
  const auto weight = random({200}, 10);
  set_threads(3);
  const auto together = rms_norm_residual(x, residual, weight, kEps);
  const auto sums = floats_of(together.sum);
  const auto normed = floats_of(together.normed);
  EXPECT_EQ(sums, floats_of(x + residual));
  for (const int row : {0, 1, 17, 299}) {
    const auto cut = [&](const mx::array& rows) {
      return mx::slice(rows, {row, 0}, {row + 1, 200});
    };
    const auto alone = floats_of(rms_norm_residual(cut(x), cut(residual), weight, kEps).normed);
    EXPECT_TRUE(same_bits(alone.data(), &normed[row * 200], 200)) << row;
    const auto plain = floats_of(rms_norm(cut(x + residual), weight, kEps));
    EXPECT_EQ(plain, alone) << row;
  }
}

TEST_P(NormTest, TheSumCanBeScaled) {
  const auto x = random({5, 40}, 13);
  const auto residual = random({5, 40}, 14);
  const auto weight = random({40}, 15);
  const auto got = rms_norm_residual(x, residual, weight, kEps, 0.75F);
  const auto sum = (x + residual) * mx::array(0.75F);
  EXPECT_EQ(floats_of(got.sum), floats_of(sum));
  EXPECT_EQ(floats_of(got.normed), floats_of(rms_norm(sum, weight, kEps)));
}

// What products of a GPU give: the sum keeps its precision, the next product takes bf16.
TEST(NormPlain, RowsOfBf16AreNormedAsBf16) {
  const auto x = random({5, 40}, 20);
  const auto residual = mx::astype(random({5, 40}, 21), mx::bfloat16);
  const auto weight = random({40}, 22);
  const auto got = rms_norm_residual(x, residual, weight, kEps, 0.75F);
  const auto sum = (x + mx::astype(residual, mx::float32)) * mx::array(0.75F);
  EXPECT_EQ(got.sum.dtype(), mx::float32);
  EXPECT_EQ(floats_of(got.sum), floats_of(sum));
  EXPECT_EQ(got.normed.dtype(), mx::bfloat16);
  const auto expected = rms_norm(mx::astype(sum, mx::bfloat16), weight, kEps);
  EXPECT_TRUE(mx::array_equal(got.normed, expected).item<bool>());
}

TEST_P(NormTest, ANanStaysInItsRow) {
  auto x = random({3, 40}, 11);
  const auto weight = random({40}, 12);
  const auto clean = floats_of(rms_norm(x, weight, kEps));
  const auto middle = mx::reshape(mx::arange(3) == mx::array(1), {3, 1});
  x = mx::where(middle, mx::array(std::numeric_limits<float>::quiet_NaN()), x);
  const auto got = floats_of(rms_norm(x, weight, kEps));
  EXPECT_TRUE(same_bits(got.data(), clean.data(), 40));
  EXPECT_TRUE(std::isnan(got[40]));
  EXPECT_TRUE(same_bits(&got[80], &clean[80], 40));
}

TEST(NormChecksTest, OtherDtypesKeepTheirs) {
  const auto x = mx::astype(random({2, 8}, 1), mx::bfloat16);
  const auto got = rms_norm(x, mx::ones({8}), kEps);
  EXPECT_EQ(got.dtype(), mx::bfloat16);
  const auto reference = rms_norm_reference(x, mx::ones({8}), kEps);
  EXPECT_TRUE(mx::allclose(got, reference, 0.02, 0.02).item<bool>());
}

TEST(NormChecksTest, WrongShapesAreErrors) {
  const auto x = random({2, 8}, 1);
  EXPECT_THROW(rms_norm(x, mx::ones({7}), kEps), Error);
  EXPECT_THROW(rms_norm(x, mx::ones({1, 8}), kEps), Error);
  EXPECT_THROW(rms_norm_residual(x, random({3, 8}, 1), mx::ones({8}), kEps), Error);
  EXPECT_THROW(norm(x, {.weight = mx::ones({8}), .bias = mx::ones({8})}), Error);
  EXPECT_THROW(
      norm(x, {.kind = NormKind::kLayer, .weight = mx::ones({8}), .bias = mx::ones({7})}), Error
  );
  EXPECT_THROW(add_residual(x, random({3, 8}, 1)), Error);
}

}  // namespace
}  // namespace saker::kernels
