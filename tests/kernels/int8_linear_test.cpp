// SPDX-License-Identifier: Apache-2.0
// Rows that take int8 operands.
#include "saker/kernels/gpu/backend.h"
#include "saker/kernels/ops/linear.h"

#include "tests/kernels/instruction_sets.h"
#include "tests/kernels/random_weights.h"
#include "tests/kernels/rows.h"
#include "tests/kernels/same_bits.h"
#include "tests/kernels/saved_machine.h"
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace saker::kernels {
namespace {

constexpr int kPanel = 512;

bool is_wide(const WeightFormat& format) {
  return format.kind == WeightKind::kFloat32 || format.kind == WeightKind::kFloat16;
}

std::vector<float> multiply_int8(
    const mx::array& x, const PackedWeight& weight, const std::vector<RowRange>& rows
) {
  return to_vector(linear(x, weight, std::nullopt, rows));
}

std::vector<float> multiply_int8(const mx::array& x, const PackedWeight& weight) {
  return multiply_int8(x, weight, {{0, x.shape(0)}});
}

class Int8LinearTest : public InstructionSetTest {};

INSTANTIATE_TEST_SUITE_P(
    Sets,
    Int8LinearTest,
    testing::ValuesIn(instruction_sets()),
    [](const auto& set) { return set.param; }
);

TEST_P(Int8LinearTest, SetsWithInt8SaySo) {
  const std::string& set = GetParam();
  EXPECT_EQ(multiplies_int8(), set.starts_with("avx512_bf16"));
}

// Of the sets that have them.
class Int8ProductTest : public Int8LinearTest {};

std::vector<std::string> int8_sets() {
  const SavedMachine saved;
  std::vector<std::string> names = instruction_sets();
  std::erase_if(names, [](const std::string& name) {
    select_instruction_set(name);
    return !multiplies_int8();
  });
  return names;
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Int8ProductTest);
INSTANTIATE_TEST_SUITE_P(
    Sets, Int8ProductTest, testing::ValuesIn(int8_sets()), [](const auto& set) { return set.param; }
);

double rounded(double value, double scale) {
  return scale > 0 ? std::nearbyint(value / scale) * scale : 0.0;
}

// What the nearest multiple may be off by where a number lies between two of them.
double undecided(double value, double scale) {
  const double multiple = scale > 0 ? value / scale : 0.0;
  return std::abs(std::abs(multiple - std::round(multiple)) - 0.5) < 1e-4 ? scale : 0.0;
}

double largest_of(const float* values, int count) {
  double result = 0;
  for (int k = 0; k < count; ++k) {
    result = std::max(result, std::abs(static_cast<double>(values[k])));
  }
  return result;
}

// The product in float64 with the rounding that panels.h states. `slack`: what float32 may make of
// it. What codes can mean may be more than what they mean: then the scale of a weight is unknown,
// and all but x's rounding becomes slack.
struct Rounded {
  double sum = 0;
  double slack = 0;
};

Rounded rounded_product(const float* x, const float* w, int columns, bool scale_known) {
  Rounded result;
  for (int first = 0; first < columns; first += kPanel) {
    const int count = std::min(kPanel, columns - first);
    const double x_scale = largest_of(x + first, count) / 127;
    const double w_scale = largest_of(w + first, count) / 127;
    for (int k = first; k < first + count; ++k) {
      const double input = rounded(x[k], x_scale);
      result.sum += input * (scale_known ? rounded(w[k], w_scale) : w[k]);
      result.slack += undecided(x[k], x_scale) * std::abs(w[k]) + 1e-6 * std::abs(input * w[k]);
      result.slack += (scale_known ? undecided(w[k], w_scale) : w_scale) * std::abs(input);
    }
  }
  return result;
}

void expect_rounded_product(const WeightFormat& format, int rows) {
  // Of bf16 the scale is known; of codes it may be larger, by the reach of their groups.
  const bool scale_known = format.kind != WeightKind::kAffine && !is_block(format.kind);
  constexpr int kOutputs = 37;
  const int unit = column_unit(format);
  const int columns = (kPanel + 301) / unit * unit;
  const auto weight = PackedWeight::pack({random_weight(format, kOutputs, columns, 5)}, format);
  const auto x = random_rows(rows, columns, 7);
  const auto y = multiply_int8(x, weight);
  const auto inputs = to_vector(x);
  const auto weights = to_vector(weight.dequantized());
  for (int i = 0; i < rows * kOutputs; ++i) {
    const float* row = inputs.data() + std::ptrdiff_t{i / kOutputs} * columns;
    const float* column = weights.data() + std::ptrdiff_t{i % kOutputs} * columns;
    const Rounded truth = rounded_product(row, column, columns, scale_known);
    ASSERT_NEAR(y.at(static_cast<std::size_t>(i)), truth.sum, truth.slack + 1e-4)
        << format_name(format) << " at " << i;
  }
}

TEST_P(Int8ProductTest, MultipliesRoundedNumbers) {
  for (const WeightFormat& format : all_formats()) {
    for (const int rows : {1, 5, 40}) {
      if (!is_wide(format)) {
        expect_rounded_product(format, rows);
      }
    }
  }
}

// Relative to the size of a sum's terms: rounding to 8 bits and nothing worse, in every format.
TEST_P(Int8ProductTest, IsNearTheTruth) {
  for (const WeightFormat& format : all_formats()) {
    if (is_wide(format)) {
      continue;
    }
    const int columns = 4 * 128;
    const auto weight = PackedWeight::pack({random_weight(format, 64, columns, 5)}, format);
    const auto x = random_rows(40, columns, 7);
    const auto y = multiply_int8(x, weight);
    const auto truth = to_vector(linear_reference(x, weight));
    double error = 0;
    double size = 0;
    for (std::size_t i = 0; i < y.size(); ++i) {
      error += std::pow(static_cast<double>(y[i]) - truth[i], 2);
      size += std::pow(truth[i], 2);
    }
    EXPECT_LT(std::sqrt(error / size), 0.02) << format_name(format);
  }
}

TEST_P(Int8LinearTest, RowsAreIndependent) {
  EXPECT_TRUE(rc::check("rows are independent", [] {
    const auto format = *rc::gen::elementOf(all_formats());
    const int unit = column_unit(format);
    const int columns = unit * *rc::gen::inRange(1, 1 + 1200 / unit);
    const int rows = *rc::gen::inRange(1, 200);
    const int count = *rc::gen::inRange(1, 65);
    const auto seed = *rc::gen::arbitrary<std::uint32_t>();
    const auto weight = PackedWeight::pack({random_weight(format, rows, columns, seed)}, format);
    const auto x = random_rows(count, columns, seed);
    set_threads(*rc::gen::inRange(1, 5));
    const auto exact = to_vector(linear(x, weight));
    const auto coarse = multiply_int8(x, weight);
    // Some ranges, with rows between them.
    std::vector<RowRange> ranges;
    std::vector<bool> named(static_cast<std::size_t>(count));
    for (int first = *rc::gen::inRange(0, 5); first < count;) {
      const int part = *rc::gen::inRange(1, count - first + 1);
      ranges.push_back({first, part});
      std::fill_n(named.begin() + first, part, true);
      first += part + *rc::gen::inRange(0, 5);
    }
    set_threads(*rc::gen::inRange(1, 5));
    const auto mixed = multiply_int8(x, weight, ranges);
    for (int row = 0; row < count; ++row) {
      const auto& expected = named[static_cast<std::size_t>(row)] ? coarse : exact;
      const std::ptrdiff_t at = std::ptrdiff_t{row} * rows;
      RC_ASSERT(same_bits(mixed.data() + at, expected.data() + at, static_cast<std::size_t>(rows)));
    }
  }));
}

TEST_P(Int8LinearTest, BadRowsStayAlone) {
  for (const WeightFormat& format : all_formats()) {
    const int columns = 2 * std::max(column_unit(format), 32);
    const auto weight = PackedWeight::pack({random_weight(format, 33, columns, 5)}, format);
    auto values = to_vector(random_rows(20, columns, 9));
    const mx::array good(values.data(), {20, columns});
    const auto expected = multiply_int8(good, weight);
    const auto width = static_cast<std::size_t>(columns);
    values[3 * width + 1] = std::numeric_limits<float>::quiet_NaN();
    values[7 * width] = std::numeric_limits<float>::infinity();
    const auto y = multiply_int8(mx::array(values.data(), {20, columns}), weight);
    for (std::size_t row = 0; row < 20; ++row) {
      const float* at = y.data() + row * 33;
      if (row == 3 || row == 7) {
        EXPECT_FALSE(std::isfinite(at[0])) << format_name(format);
      } else {
        EXPECT_TRUE(same_bits(at, expected.data() + row * 33, 33)) << format_name(format);
      }
    }
  }
}

TEST_P(Int8ProductTest, RowsOfZerosGiveZeros) {
  const WeightFormat format = {WeightKind::kAffine, 4, 64};
  const auto weight = PackedWeight::pack({random_weight(format, 33, 128, 5)}, format);
  for (const float y : multiply_int8(mx::zeros({18, 128}), weight)) {
    EXPECT_EQ(y, 0.0F);
  }
}

}  // namespace
}  // namespace saker::kernels
