// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/ops/experts/expert_linear.h"

#include "saker/base/error.h"
#include "saker/kernels/gpu/backend.h"
#include "saker/kernels/layout/block_format.h"
#include "saker/kernels/ops/linear.h"

#include "tests/kernels/instruction_sets.h"
#include "tests/kernels/random_weights.h"
#include "tests/kernels/rows.h"
#include "tests/kernels/saved_machine.h"
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

namespace saker::kernels {
namespace {

mx::array rows_of(const mx::array& x, int first, int count) {
  return mx::slice(x, {first, 0}, {first + count, x.shape(1)});
}

std::vector<std::vector<WeightTensors>> random_experts(
    const WeightFormat& format, int experts, int rows, int columns, std::uint64_t seed
) {
  std::vector<std::vector<WeightTensors>> result;
  for (int expert = 0; expert < experts; ++expert) {
    // Seeds 3 apart, so that the scales are of one dtype.
    const auto own = seed + static_cast<std::uint64_t>(3 * expert);
    result.push_back({random_weight(format, rows, columns, own)});
  }
  return result;
}

bool same_bits(const std::vector<float>& part, const std::vector<float>& whole, std::size_t first) {
  return first + part.size() <= whole.size() &&
         std::memcmp(part.data(), whole.data() + first, part.size() * sizeof(float)) == 0;
}

float largest_difference(const mx::array& a, const mx::array& b) {
  return mx::max(mx::abs(mx::subtract(a, b))).item<float>();
}

// A mixture of linear layers: choice, products, sum.
mx::array mixture(
    const mx::array& x, const mx::array& scores, int chosen, const ExpertWeights& weights
) {
  const auto choice =
      choose_experts(scores, {.chosen = chosen, .score = RouterScore::kSoftmaxOfChosen});
  const auto sorted = sort_by_expert(choice.ids, weights.experts());
  return combine_experts(
      expert_linear(gather_rows(x, sorted), sorted, weights), sorted, choice.weights
  );
}

class ExpertLinearTest : public InstructionSetTest {};

INSTANTIATE_TEST_SUITE_P(
    Sets,
    ExpertLinearTest,
    testing::ValuesIn(instruction_sets()),
    [](const auto& set) { return set.param; }
);

// The bits of a row are those of the row alone, whatever rows, experts, chunks and threads.
TEST_P(ExpertLinearTest, RowsAreIndependent) {
  EXPECT_TRUE(rc::check("rows are independent", [] {
    const auto format = *rc::gen::elementOf(all_formats());
    const int unit = column_unit(format);
    const int columns = unit * *rc::gen::inRange(1, unit == 1 ? 300 : 2 + 300 / unit);
    const int rows = *rc::gen::inRange(1, 70);
    const int experts = *rc::gen::inRange(1, 10);
    const int chosen = *rc::gen::inRange(1, experts + 1);
    const int count = *rc::gen::inRange(1, 50);
    const auto seed = *rc::gen::arbitrary<std::uint32_t>();
    const auto weights =
        ExpertWeights::pack(random_experts(format, experts, rows, columns, seed), format);
    const auto x = random_rows(count, columns, seed);
    const auto scores = random_rows(count, experts, seed + 1);
    set_threads(*rc::gen::inRange(1, 5));
    const auto together = to_vector(mixture(x, scores, chosen, weights));
    set_threads(*rc::gen::inRange(1, 5));
    for (int first = 0; first < count;) {
      const int part = *rc::gen::inRange(1, count - first + 1);
      const auto alone =
          to_vector(mixture(rows_of(x, first, part), rows_of(scores, first, part), chosen, weights)
          );
      RC_ASSERT(same_bits(alone, together, static_cast<std::size_t>(first) * rows));
      first += part;
    }
  }));
}

// Each row's product has the bits of its expert's own linear layer.
TEST_P(ExpertLinearTest, IsEachExpertsLinear) {
  for (const WeightFormat& format : all_formats()) {
    const int columns = format.group_size == 0 ? 101 : 2 * column_unit(format);
    const auto tensors = random_experts(format, 5, 37, columns, 4);
    const auto weights = ExpertWeights::pack(tensors, format);
    const auto x = random_rows(40, columns, 3);
    const auto ids =
        mx::astype(mx::random::randint(0, 5, {40, 1}, mx::int32, mx::random::key(9)), mx::int32);
    const auto sorted = sort_by_expert(ids, 5);
    const auto y = to_vector(expert_linear(gather_rows(x, sorted), sorted, weights));
    const auto pairs = to_vector<int>(sorted.pairs);
    const auto of_row = to_vector<int>(ids);
    for (std::size_t place = 0; place < pairs.size(); ++place) {
      const auto expert = static_cast<std::size_t>(of_row[static_cast<std::size_t>(pairs[place])]);
      const auto weight = PackedWeight::pack(tensors[expert], format);
      const auto alone = to_vector(linear(rows_of(x, pairs[place], 1), weight));
      ASSERT_TRUE(same_bits(alone, y, place * 37)) << format_name(format) << " at " << place;
    }
  }
}

TEST_P(ExpertLinearTest, IsNearTheReference) {
  for (const WeightFormat& format : all_formats()) {
    const int columns = format.group_size == 0 ? 65 : column_unit(format);
    auto biases = random_rows(6, 24, 5);
    mx::eval(biases);
    const auto weights =
        ExpertWeights::pack(random_experts(format, 6, 24, columns, 2), format).with_biases(biases);
    const auto x = random_rows(30, columns, 3);
    const auto sorted =
        sort_by_expert(choose_experts(random_rows(30, 6, 8), {.chosen = 2}).ids, weights.experts());
    const auto gathered = gather_rows(x, sorted);
    const auto reference = expert_linear_reference(gathered, sorted, weights);
    const float size = mx::max(mx::abs(reference)).item<float>();
    EXPECT_LT(largest_difference(expert_linear(gathered, sorted, weights), reference), 0.02F * size)
        << format_name(format);
  }
}

TEST_P(ExpertLinearTest, JoinsPartsAndReadsStridedRows) {
  const WeightFormat format = {WeightKind::kAffine, 4, 32};
  std::vector<std::vector<WeightTensors>> joined;
  std::vector<std::vector<WeightTensors>> gates;
  for (const std::uint64_t expert : {0, 1, 2}) {
    gates.push_back({random_weight(format, 20, 64, 6 * expert)});
    joined.push_back({gates.back()[0], random_weight(format, 20, 64, 6 * expert + 3)});
  }
  const auto weights = ExpertWeights::pack(joined, format);
  const auto gate_weights = ExpertWeights::pack(gates, format);
  const auto sorted = sort_by_expert(mx::array({2, 0, 2, 1, 0}, {5, 1}), 3);
  const auto x = mx::transpose(random_rows(64, 5, 1));
  const auto both = expert_linear(x, sorted, weights);
  EXPECT_EQ(both.shape(), (mx::Shape{5, 40}));
  EXPECT_EQ(
      to_vector(mx::slice(both, {0, 0}, {5, 20})),
      to_vector(expert_linear(mx::contiguous(x), sorted, gate_weights))
  );
  EXPECT_EQ(expert_linear(mx::astype(x, mx::bfloat16), sorted, weights).dtype(), mx::bfloat16);
}

// Each expert's parts are in formats of their own.
TEST_P(ExpertLinearTest, LaysPartsOfAnyFormatSideBySide) {
  const std::vector<WeightFormat> formats = {
      {WeightKind::kAffine, 4, 32}, {WeightKind::kFloat16}, weight_format(BlockKind::kQ80)
  };
  constexpr int kColumns = 64;
  std::vector<std::vector<ExpertPart>> experts(3);
  std::uint64_t seed = 0;
  for (std::size_t expert = 0; expert < experts.size(); ++expert) {
    const auto& other = formats[(expert + 1) % 3];
    experts[expert].push_back(
        {{random_weight(formats[expert], 20, kColumns, ++seed)}, formats[expert]}
    );
    if (expert > 0) {
      experts[expert].push_back({{random_weight(other, 17, kColumns, ++seed)}, other});
    } else {
      experts[expert].push_back({{random_weight(other, 8, kColumns, ++seed)}, other});
      experts[expert].push_back({{random_weight(other, 9, kColumns, ++seed)}, other});
    }
  }
  const auto weights = ExpertWeights::pack(experts);
  const auto x = random_rows(12, kColumns, 3);
  const auto sorted =
      sort_by_expert(mx::array({2, 0, 7, 1, 0, 2, 2, 1, 0, 2, 0, 2}, {12, 1}), weights.experts());
  const auto y = to_vector(expert_linear(gather_rows(x, sorted), sorted, weights));
  const auto pairs = to_vector<int>(sorted.pairs);
  const auto of_place = to_vector<int>(sorted.experts);
  for (std::size_t place = 0; place < 11; ++place) {
    std::vector<float> expected;
    for (const auto& part : experts[static_cast<std::size_t>(of_place[place])]) {
      const auto weight = PackedWeight::pack(part.tensors, part.format);
      const auto columns = to_vector(linear(rows_of(x, pairs[place], 1), weight));
      expected.insert(expected.end(), columns.begin(), columns.end());
    }
    EXPECT_TRUE(same_bits(expected, y, place * 37)) << place;
  }
  EXPECT_TRUE(std::isnan(y[11 * 37]));
  EXPECT_EQ(weights.dequantized().shape(), (mx::Shape{3, 37, kColumns}));
}

TEST(ExpertLinear, AGpuWantsOneFormat) {
  const WeightFormat format = {WeightKind::kAffine, 4, 32};
  const WeightFormat other = {WeightKind::kAffine, 8, 32};
  const auto part = [](const WeightFormat& of) {
    return std::vector<ExpertPart>{{{random_weight(of, 16, 64, 3)}, of}};
  };
  pretend_gpu(true);
  EXPECT_THROW(ExpertWeights::pack({part(format), part(other)}), Error);
  EXPECT_NO_THROW(ExpertWeights::pack({part(format), part(format)}));
  pretend_gpu(false);
}

// A weight of NaN and a bad row show only where they were chosen.
TEST_P(ExpertLinearTest, OnlyChosenExpertsMatter) {
  const WeightFormat format = {WeightKind::kFloat32, 0, 0};
  auto tensors = random_experts(format, 4, 20, 33, 5);
  const auto good = ExpertWeights::pack(tensors, format);
  const std::vector<float> bad(20 * 33, std::numeric_limits<float>::quiet_NaN());
  tensors[2][0].weight.data = std::shared_ptr<const std::byte>(
      std::shared_ptr<void>(), reinterpret_cast<const std::byte*>(bad.data())
  );
  const auto weights = ExpertWeights::pack(tensors, format);
  auto rows = to_vector(random_rows(6, 33, 2));
  rows[3 * 33] = std::numeric_limits<float>::quiet_NaN();
  const mx::array x(rows.data(), {6, 33});
  const auto scores = mx::array(
      {4.0F, 3.0F, 0.0F, 1.0F, 0.0F, 1.0F, 2.0F, 3.0F, 4.0F, 3.0F, 1.0F, 0.0F,
       4.0F, 3.0F, 1.0F, 0.0F, 0.0F, 1.0F, 0.0F, 3.0F, 4.0F, 0.0F, 2.0F, 3.0F},
      {6, 4}
  );
  const auto y = to_vector(mixture(x, scores, 2, weights));
  const auto expected = to_vector(mixture(x, scores, 2, good));
  for (int row = 0; row < 6; ++row) {
    for (int n = 0; n < 20; ++n) {
      const auto at = static_cast<std::size_t>(row) * 20 + static_cast<std::size_t>(n);
      if (row == 1 || row == 3) {
        EXPECT_TRUE(std::isnan(y[at])) << row;
      } else {
        EXPECT_EQ(y[at], expected[at]) << row;
      }
    }
  }
}

TEST(ExpertLinear, UnknownExpertsGiveNaN) {
  const WeightFormat format = {WeightKind::kFloat32, 0, 0};
  const auto weights = ExpertWeights::pack(random_experts(format, 2, 4, 8, 1), format);
  const auto sorted = sort_by_expert(mx::array({7, 1, -1, 0}, {4, 1}), 2);
  EXPECT_EQ(to_vector<int>(sorted.pairs), (std::vector<int>{3, 1, 0, 2}));
  EXPECT_EQ(to_vector<int>(sorted.experts), (std::vector<int>{0, 1, 2, 2}));
  const auto y = to_vector(expert_linear(random_rows(4, 8, 1), sorted, weights));
  EXPECT_TRUE(std::ranges::none_of(y.begin(), y.begin() + 8, [](float v) { return std::isnan(v); })
  );
  EXPECT_TRUE(std::ranges::all_of(y.begin() + 8, y.end(), [](float v) { return std::isnan(v); }));
}

TEST(ExpertLinear, CountsOneExpertsBytes) {
  const WeightFormat format = {WeightKind::kBFloat16, 0, 0};
  const auto weights = ExpertWeights::pack(random_experts(format, 3, 32, 64, 1), format);
  EXPECT_EQ(weights.expert_nbytes(), 32U * 64U * 2U);
  EXPECT_EQ(weights.dequantized().shape(), (mx::Shape{3, 32, 64}));
}

TEST(ExpertLinear, RefusesWrongShapes) {
  const WeightFormat format = {WeightKind::kFloat32, 0, 0};
  auto tensors = random_experts(format, 2, 4, 8, 1);
  const auto weights = ExpertWeights::pack(tensors, format);
  const auto sorted = sort_by_expert(mx::array({1, 0}, {2, 1}), 2);
  EXPECT_THROW(expert_linear(mx::zeros({2, 7}), sorted, weights), Error);
  EXPECT_THROW(expert_linear(mx::zeros({3, 8}), sorted, weights), Error);
  tensors.push_back({random_weight(format, 5, 8, 1)});
  EXPECT_THROW(ExpertWeights::pack(tensors, format), Error);
}

}  // namespace
}  // namespace saker::kernels
