// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/ops/adapter_delta.h"

#include "saker/kernels/gpu/backend.h"

#include "tests/kernels/instruction_sets.h"
#include "tests/kernels/random_weights.h"
#include "tests/kernels/rows.h"
#include "tests/kernels/saved_machine.h"
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace saker::kernels {
namespace {

constexpr int kInputs = 70;
constexpr int kOutputs = 50;
constexpr int kWidth = 90;  // Columns of y: the change begins at 20.
constexpr int kRows = 150;

std::vector<float> random_vector(int count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<std::size_t>(count));
  std::generate(values.begin(), values.end(), [&] { return normal(random); });
  return values;
}

PackedWeight random_packed(int rows, int columns, unsigned seed) {
  const WeightFormat format{.kind = WeightKind::kFloat32};
  return PackedWeight::pack({random_weight(format, rows, columns, seed)}, format);
}

AdapterDelta low_rank() {
  AdapterDelta change;
  change.down = random_packed(5, kInputs, 1);
  change.up = random_packed(kOutputs, 5, 2);
  change.scales = random_vector(kOutputs, 3);
  return change;
}

AdapterDelta weight_decomposed() {
  AdapterDelta change = low_rank();
  change.gains = random_vector(kOutputs, 4);
  change.offsets = random_vector(kOutputs, 5);
  return change;
}

AdapterDelta replacement() {
  AdapterDelta change;
  change.up = random_packed(kOutputs, kInputs, 6);
  change.scales.assign(kOutputs, 1.0F);
  change.gains.assign(kOutputs, -1.0F);
  return change;
}

AdapterDelta bias_only() {
  AdapterDelta change;
  change.offsets = random_vector(kOutputs, 7);
  return change;
}

ChangedColumns on_rows(AdapterDelta change, std::vector<int> rows, std::vector<float> strengths) {
  return {
      std::make_shared<const AdapterDelta>(std::move(change)),
      std::make_shared<const RowStrengths>(RowStrengths{std::move(rows), std::move(strengths)}),
      20,
  };
}

// Every third row of many, at different strengths.
ChangedColumns on_some_rows(AdapterDelta change) {
  std::vector<int> rows;
  std::vector<float> strengths;
  for (int row = 1; row < kRows; row += 3) {
    rows.push_back(row);
    strengths.push_back(0.1F * static_cast<float>(row % 13) - 0.3F);
  }
  return on_rows(std::move(change), std::move(rows), std::move(strengths));
}

class AdapterDeltaTest : public InstructionSetTest {
 protected:
  mx::array x_ = random_rows(kRows, kInputs, 10);
  mx::array y_ = random_rows(kRows, kWidth, 11);
};

INSTANTIATE_TEST_SUITE_P(
    Sets,
    AdapterDeltaTest,
    testing::ValuesIn(instruction_sets()),
    [](const auto& set) { return set.param; }
);

TEST_P(AdapterDeltaTest, IsTheReferences) {
  for (const auto& make : {low_rank, weight_decomposed, replacement, bias_only}) {
    const std::vector<ChangedColumns> changes = {
        on_some_rows(make()), on_rows(low_rank(), {0, 1, 2}, {1.0F, 0.5F, 2.0F})
    };
    const auto result = to_vector(change_output(y_, x_, changes));
    const auto expected = to_vector(change_output_reference(y_, x_, changes));
    ASSERT_EQ(result.size(), expected.size());
    for (std::size_t i = 0; i < result.size(); ++i) {
      ASSERT_NEAR(result[i], expected[i], 1e-3) << i;
    }
  }
}

// Rows that are not named keep their bits, and a named row's bits are those of the row alone,
// whatever is beside it and on however many threads.
TEST_P(AdapterDeltaTest, RowsAreIndependent) {
  for (const auto& make : {low_rank, weight_decomposed, replacement, bias_only}) {
    const auto change = on_some_rows(make());
    set_threads(3);
    const auto together = to_vector(change_output(y_, x_, {change}));
    set_threads(1);
    const auto before = to_vector(y_);
    for (int row = 0; row < kRows; ++row) {
      const auto found = std::ranges::find(change.rows->rows, row);
      std::vector<float> alone(before.begin() + row * kWidth, before.begin() + (row + 1) * kWidth);
      if (found != change.rows->rows.end()) {
        const auto index = static_cast<std::size_t>(found - change.rows->rows.begin());
        alone = to_vector(change_output(
            mx::slice(y_, {row, 0}, {row + 1, kWidth}),
            mx::slice(x_, {row, 0}, {row + 1, kInputs}),
            {on_rows(make(), {0}, {change.rows->strengths[index]})}
        ));
      }
      ASSERT_TRUE(std::equal(alone.begin(), alone.end(), together.begin() + row * kWidth)) << row;
    }
  }
}

// Changes of the same rows share products, which changes no bit; weights of two formats among them.
TEST_P(AdapterDeltaTest, TogetherIsOneAfterTheOther) {
  AdapterDelta narrow = low_rank();
  const WeightFormat format{.kind = WeightKind::kBFloat16};
  narrow.down = PackedWeight::pack({random_weight(format, 5, kInputs, 8)}, format);
  auto changes = std::vector{
      on_some_rows(low_rank()),
      on_some_rows(narrow),
      on_some_rows(bias_only()),
      on_some_rows(weight_decomposed()),
      on_some_rows(low_rank()),
      on_some_rows(narrow),
      on_some_rows(replacement()),
  };
  for (auto& change : changes) {
    change.rows = changes.front().rows;
  }
  const auto together = to_vector(change_output(y_, x_, changes));
  auto after = y_;
  for (const auto& change : changes) {
    after = change_output(after, x_, {change});
  }
  EXPECT_EQ(together, to_vector(after));
}

// The memory of y is taken over only when nobody else reads it.
TEST_P(AdapterDeltaTest, LeavesTheInputAlone) {
  const auto kept = mx::add(y_, mx::array(0.0F));
  const auto changed = change_output(kept, x_, {on_some_rows(low_rank())});
  mx::eval(changed);
  EXPECT_EQ(to_vector(kept), to_vector(y_));
  EXPECT_EQ(
      to_vector(change_output(mx::add(y_, mx::array(0.0F)), x_, {on_some_rows(low_rank())})),
      to_vector(changed)
  );
}

}  // namespace
}  // namespace saker::kernels
