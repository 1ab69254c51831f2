// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/ops/experts/head_linear.h"

#include "saker/base/error.h"
#include "saker/kernels/layout/block_format.h"
#include "saker/kernels/ops/linear.h"

#include "tests/kernels/instruction_sets.h"
#include "tests/kernels/random_weights.h"
#include "tests/kernels/rows.h"
#include "tests/kernels/saved_machine.h"
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstring>
#include <vector>

namespace saker::kernels {
namespace {

class HeadLinearTest : public InstructionSetTest {};

INSTANTIATE_TEST_SUITE_P(
    Sets,
    HeadLinearTest,
    testing::ValuesIn(instruction_sets()),
    [](const auto& set) { return set.param; }
);

std::vector<float> values_of(const mx::array& x) {
  return to_vector(mx::astype(x, mx::float32));
}

// Each row of each head is a linear layer of its own, with its tail behind it.
TEST_P(HeadLinearTest, RowsAreLinearLayersOfTheirHead) {
  EXPECT_TRUE(rc::check("rows are those of linear", [] {
    const auto format = *rc::gen::elementOf(all_formats());
    const int unit = column_unit(format);
    const int columns = unit * *rc::gen::inRange(1, unit == 1 ? 100 : 2 + 100 / unit);
    const int rows = *rc::gen::inRange(1, 50);
    const int heads = *rc::gen::inRange(1, 6);
    const int count = *rc::gen::inRange(1, 40);
    const int tail_width = *rc::gen::element(0, 1, 7, 16);
    const int seed = *rc::gen::inRange(0, 1 << 20);
    set_threads(*rc::gen::inRange(1, 5));
    std::vector<std::vector<WeightTensors>> tensors;
    std::vector<PackedWeight> apart;
    for (int head = 0; head < heads; ++head) {
      tensors.push_back(
          {random_weight(format, rows, columns, static_cast<std::uint64_t>(seed + 3 * head))}
      );
      apart.push_back(PackedWeight::pack(tensors.back(), format));
    }
    const auto weights = ExpertWeights::pack(tensors, format);
    // Heads lie inside of wider rows.
    const auto wide = mx::reshape(
        random_rows(count, heads * (columns + 3), static_cast<std::uint64_t>(seed)),
        {count, heads, columns + 3}
    );
    const auto x = mx::slice(wide, {0, 0, 2}, {count, heads, columns + 2});
    const auto tail = mx::slice(wide, {0, 0, 0}, {count, heads, std::min(tail_width, columns)});
    const bool has_tail = tail.shape(2) > 0;
    const auto y = head_linear(x, weights, has_tail ? std::optional(tail) : std::nullopt);
    RC_ASSERT(y.shape() == mx::Shape({count, heads, rows + tail.shape(2)}));
    for (int head = 0; head < heads; ++head) {
      const auto part = [&](const mx::array& of, int first, int end) {
        return mx::reshape(
            mx::slice(of, {0, head, first}, {count, head + 1, end}), {count, end - first}
        );
      };
      const auto expected =
          linear(mx::contiguous(part(x, 0, columns)), apart[static_cast<std::size_t>(head)]);
      RC_ASSERT(values_of(part(y, 0, rows)) == values_of(expected));
      if (has_tail) {
        const int width = tail.shape(2);
        RC_ASSERT(values_of(part(y, rows, rows + width)) == values_of(part(tail, 0, width)));
      }
    }
  }));
}

TEST(HeadLinear, AgreesWithTheReference) {
  const WeightFormat format{.kind = WeightKind::kFloat32};
  const auto weights = ExpertWeights::pack(
      {{random_weight(format, 5, 7, 1)}, {random_weight(format, 5, 7, 2)}}, format
  );
  const auto x = mx::reshape(random_rows(3, 14, 3), {3, 2, 7});
  auto difference =
      mx::max(mx::abs(mx::subtract(head_linear(x, weights), head_linear_reference(x, weights))));
  EXPECT_LT(difference.item<float>(), 1e-5F);
}

TEST(HeadLinear, RefusesOtherShapes) {
  const WeightFormat format{.kind = WeightKind::kFloat32};
  const auto weights = ExpertWeights::pack({{random_weight(format, 5, 7, 1)}}, format);
  EXPECT_THROW(head_linear(mx::zeros({3, 2, 7}), weights), Error);
  EXPECT_THROW(head_linear(mx::zeros({3, 1, 8}), weights), Error);
  EXPECT_THROW(head_linear(mx::zeros({3, 1, 7}), weights, mx::zeros({2, 1, 4})), Error);
}

}  // namespace
}  // namespace saker::kernels
