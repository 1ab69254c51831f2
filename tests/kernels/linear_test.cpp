// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/ops/linear.h"

#include "saker/base/error.h"
#include "saker/kernels/gpu/backend.h"

#include "tests/kernels/instruction_sets.h"
#include "tests/kernels/random_weights.h"
#include "tests/kernels/rows.h"
#include "tests/kernels/same_bits.h"
#include "tests/kernels/saved_machine.h"
#include "tests/kernels/true_products.h"
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace saker::kernels {
namespace {

// Rows [first, first + count) multiplied alone.
std::vector<float> multiply_part(
    const mx::array& x,
    int first,
    int count,
    const PackedWeight& weight,
    const std::optional<mx::array>& bias
) {
  return to_vector(linear(mx::slice(x, {first, 0}, {first + count, x.shape(1)}), weight, bias));
}

class LinearTest : public InstructionSetTest {};

INSTANTIATE_TEST_SUITE_P(
    Sets,
    LinearTest,
    testing::ValuesIn(instruction_sets()),
    [](const auto& set) { return set.param; }
);

// The bits of a row are those of the row alone, whatever rows, chunks and threads.
TEST_P(LinearTest, RowsAreIndependent) {
  EXPECT_TRUE(rc::check("rows are independent", [] {
    const auto format = *rc::gen::elementOf(all_formats());
    const int unit = column_unit(format);
    const int columns = unit * *rc::gen::inRange(1, unit == 1 ? 600 : 1 + 600 / unit);
    const int rows = *rc::gen::inRange(1, 200);
    const int count = *rc::gen::inRange(1, 65);
    const auto seed = *rc::gen::arbitrary<std::uint32_t>();
    const auto weight = PackedWeight::pack({random_weight(format, rows, columns, seed)}, format);
    const std::optional<mx::array> bias =
        *rc::gen::arbitrary<bool>() ? std::optional(mx::random::normal({rows})) : std::nullopt;
    const auto x = random_rows(count, columns, seed);
    set_threads(*rc::gen::inRange(1, 5));
    const auto together = to_vector(linear(x, weight, bias));
    set_threads(*rc::gen::inRange(1, 5));
    for (int first = 0; first < count;) {
      const int part = *rc::gen::inRange(1, count - first + 1);
      const auto alone = multiply_part(x, first, part, weight, bias);
      const float* expected = together.data() + static_cast<std::size_t>(first) * rows;
      RC_ASSERT(same_bits(alone.data(), expected, alone.size()));
      first += part;
    }
    const int row = *rc::gen::inRange(0, count);
    const auto alone = multiply_part(x, row, 1, weight, bias);
    const float* expected = together.data() + static_cast<std::size_t>(row) * rows;
    RC_ASSERT(same_bits(alone.data(), expected, alone.size()));
  }));
}

TEST_P(LinearTest, IsNearTheTruth) {
  for (const WeightFormat& format : all_formats()) {
    for (const int count : {1, 3, 13}) {
      const int columns = format.group_size == 0 ? 301 : 3 * column_unit(format);
      const auto weight = PackedWeight::pack({random_weight(format, 37, columns, 5)}, format);
      const auto x = random_rows(count, columns, 7);
      const auto y = to_vector(linear(x, weight));
      const auto reference = to_vector(linear_reference(x, weight));
      const TrueProducts truth = true_products(
          to_vector(x),
          to_vector(weight.dequantized()),
          columns,
          linear_rounding(GetParam(), format)
      );
      ASSERT_EQ(y.size(), truth.sums.size());
      for (std::size_t i = 0; i < y.size(); ++i) {
        ASSERT_NEAR(y[i], truth.sums[i], truth.limits[i]) << format_name(format) << " at " << i;
        ASSERT_NEAR(reference[i], truth.sums[i], truth.limits[i]) << format_name(format);
      }
    }
  }
}

// Tiles of rows and panels of columns have borders that small shapes never meet.
TEST_P(LinearTest, LargeShapesKeepTheirBits) {
  for (const WeightFormat& format :
       {WeightFormat{WeightKind::kAffine, 4, 64},
        WeightFormat{WeightKind::kBFloat16, 0, 0},
        WeightFormat{WeightKind::kFloat32, 0, 0}}) {
    const auto weight = PackedWeight::pack({random_weight(format, 330, 576, 3)}, format);
    const auto x = random_rows(250, 576, 11);
    const auto together = to_vector(linear(x, weight));
    for (const int row : {0, 5, 119, 120, 239, 240, 249}) {
      const auto alone = multiply_part(x, row, 1, weight, std::nullopt);
      EXPECT_TRUE(same_bits(alone.data(), together.data() + row * 330, 330));
    }
  }
}

TEST_P(LinearTest, BadRowsStayAlone) {
  for (const WeightFormat& format : all_formats()) {
    const int columns = 2 * std::max(column_unit(format), 32);
    const auto weight = PackedWeight::pack({random_weight(format, 33, columns, 5)}, format);
    auto values = to_vector(random_rows(8, columns, 9));
    const mx::array good(values.data(), {8, columns});
    const auto expected = to_vector(linear(good, weight));
    const auto width = static_cast<std::size_t>(columns);
    values[2 * width + 1] = std::numeric_limits<float>::quiet_NaN();
    values[5 * width] = std::numeric_limits<float>::infinity();
    const auto y = to_vector(linear(mx::array(values.data(), {8, columns}), weight));
    for (std::size_t at = 0; at < y.size(); ++at) {
      const std::size_t row = at / 33;
      if (row == 2) {
        EXPECT_TRUE(std::isnan(y[at])) << format_name(format);
      } else if (row != 5) {
        EXPECT_EQ(y[at], expected[at]) << format_name(format);
      }
    }
  }
}

TEST_P(LinearTest, ReadsStridedInputsAndKeepsTheirDtype) {
  const WeightFormat format = {WeightKind::kAffine, 8, 32};
  const auto weight = PackedWeight::pack({random_weight(format, 20, 64, 1)}, format);
  const auto x = random_rows(64, 9, 4);
  const auto transposed = mx::transpose(x);
  EXPECT_EQ(
      to_vector(linear(transposed, weight)), to_vector(linear(mx::contiguous(transposed), weight))
  );
  const auto wide = random_rows(5, 100, 4);
  const auto part = mx::slice(wide, {0, 30}, {5, 94});
  EXPECT_EQ(to_vector(linear(part, weight)), to_vector(linear(mx::contiguous(part), weight)));
  EXPECT_EQ(linear(mx::astype(part, mx::bfloat16), weight).dtype(), mx::bfloat16);
  EXPECT_EQ(linear(mx::zeros({0, 64}), weight).shape(), (mx::Shape{0, 20}));
}

// What tests say about an emulated set holds for the processor's, where it has it.
TEST(Linear, EmulationGivesTheProcessorsBits) {
  const SavedMachine saved;
  const auto sets = instruction_sets();
  for (const std::string name : {"avx512", "avx512_bf16", "avx512_bf16_zen4", "amx"}) {
    if (std::find(sets.begin(), sets.end(), name) == sets.end()) {
      continue;
    }
    for (const WeightFormat& format : all_formats()) {
      const int columns = format.group_size == 0 ? 333 : 3 * column_unit(format);
      select_instruction_set(name);
      const auto weight = PackedWeight::pack({random_weight(format, 100, columns, 6)}, format);
      const auto tiny = mx::array(1e-38F);
      const auto x =
          mx::concatenate({random_rows(30, columns, 2), tiny * random_rows(9, columns, 3)}, 0);
      const auto native = to_vector(linear(x, weight));
      select_instruction_set(name + "_emulated");
      EXPECT_EQ(to_vector(linear(x, weight)), native) << name << " " << format_name(format);
    }
  }
}

TEST(Linear, EmbedGivesDequantizedRows) {
  for (const WeightFormat& format : all_formats()) {
    const int columns = format.group_size == 0 ? 51 : 2 * column_unit(format);
    const auto weight = PackedWeight::pack({random_weight(format, 70, columns, 8)}, format);
    const auto ids = mx::array({69, 0, 17, 17}, mx::int32);
    EXPECT_EQ(to_vector(embed(ids, weight)), to_vector(mx::take(weight.dequantized(), ids, 0)))
        << format_name(format);
    const auto bad = to_vector(embed(mx::array({70, -1}, mx::int32), weight));
    EXPECT_TRUE(std::isnan(bad.front()) && std::isnan(bad.back()));
  }
}

TEST(Linear, RefusesWeightsOfAnotherSet) {
  const SavedMachine saved;
  const auto sets = instruction_sets();
  if (std::find(sets.begin(), sets.end(), "amx_emulated") == sets.end()) {
    GTEST_SKIP() << "this machine runs no set with tiles";
  }
  const WeightFormat format = {WeightKind::kMxfp4, 4, 32};
  select_instruction_set("amx_emulated");
  const auto weight = PackedWeight::pack({random_weight(format, 16, 64, 1)}, format);
  EXPECT_NO_THROW(linear(mx::zeros({1, 64}), weight));
  select_instruction_set("portable");
  EXPECT_THROW(linear(mx::zeros({1, 64}), weight), Error);
}

TEST(Linear, RefusesWrongShapes) {
  const WeightFormat format = {WeightKind::kFloat32, 0, 0};
  const auto weight = PackedWeight::pack({random_weight(format, 4, 8, 8)}, format);
  EXPECT_THROW(linear(mx::zeros({2, 7}), weight), Error);
  EXPECT_THROW(linear(mx::zeros({8}), weight), Error);
  EXPECT_THROW(linear(mx::zeros({2, 8}), weight, mx::zeros({5})), Error);
  EXPECT_THROW(embed(mx::zeros({2}), weight), Error);
}

}  // namespace
}  // namespace saker::kernels
