// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/ops/recurrent/selective_scan.h"

#include "saker/base/error.h"
#include "saker/kernels/gpu/backend.h"

#include "tests/kernels/instruction_sets.h"
#include "tests/kernels/rows.h"
#include "tests/kernels/saved_machine.h"
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace saker::kernels {
namespace {

constexpr int kScanRows = 40;

ScanShape scan_shape(int head_dim, int state_dim) {
  return {.heads = 4, .head_dim = head_dim, .groups = 2, .state_dim = state_dim, .taps = 4};
}

mx::array scan_vector(int count, unsigned seed) {
  return mx::reshape(random_rows(1, count, seed), {count});
}

ScanWeights scan_weights(const ScanShape& shape) {
  return {
      .convolution =
          {random_rows(shape.taps, shape.channels(), 1), scan_vector(shape.channels(), 8)},
      .decay_rate = mx::exp(scan_vector(shape.heads, 2)),
      .step_bias = scan_vector(shape.heads, 3),
      .skip = scan_vector(shape.heads, 4),
      .min_step = 0.4F,
      .max_step = 1.1F,
  };
}

ScanInputs scan_inputs(const ScanShape& shape) {
  return {random_rows(kScanRows, shape.channels(), 5), random_rows(kScanRows, shape.heads, 6)};
}

ScanInputs cut_scan(const ScanInputs& inputs, int first, int count) {
  const auto rows = [&](const mx::array& x) {
    return mx::slice(x, {first, 0}, {first + count, x.shape(1)});
  };
  return {rows(inputs.rows), rows(inputs.steps)};
}

class SelectiveScanTest : public InstructionSetTest {};

INSTANTIATE_TEST_SUITE_P(
    Sets,
    SelectiveScanTest,
    testing::ValuesIn(instruction_sets()),
    [](const auto& set) { return set.param; }
);

TEST_P(SelectiveScanTest, IsTheReferences) {
  for (const auto& [head_dim, state_dim] :
       {std::pair(16, 64), {80, 16}, {22, 10}, {96, 7}, {1, 1}}) {
    const ScanShape shape = scan_shape(head_dim, state_dim);
    const ScanWeights weights = scan_weights(shape);
    const ScanInputs inputs = scan_inputs(shape);
    const auto before = selective_scan_reference(
        cut_scan(inputs, 0, 5), weights, shape, {{0, 5, empty_scan_state(shape)}}
    );
    const std::vector<RecurrentSpan> spans = {
        {0, 1, empty_scan_state(shape)},
        {1, kScanRows - 1, before.states.front()},
    };
    const auto result = selective_scan(inputs, weights, shape, spans);
    const auto expected = selective_scan_reference(inputs, weights, shape, spans);
    const auto near = [](const mx::array& a, const mx::array& b) {
      const float largest = mx::max(mx::abs(b)).item<float>();
      return mx::max(mx::abs(a - b)).item<float>() < 2e-6F * std::max(largest, 1.0F);
    };
    EXPECT_TRUE(near(result.rows, expected.rows)) << head_dim << ' ' << state_dim;
    for (std::size_t i = 0; i < spans.size(); ++i) {
      EXPECT_TRUE(near(result.states[i][0], expected.states[i][0]));
      EXPECT_TRUE(near(result.states[i][1], expected.states[i][1]));
    }
  }
}

// A row's bits are the same however its sequence is cut, whatever is beside it and on however many
// threads.
TEST_P(SelectiveScanTest, CutsChangeNoBit) {
  const ScanShape shape = scan_shape(80, 16);
  const ScanWeights weights = scan_weights(shape);
  const ScanInputs inputs = scan_inputs(shape);
  set_threads(1);
  const auto whole =
      selective_scan(inputs, weights, shape, {{0, kScanRows, empty_scan_state(shape)}});
  const auto expected = to_vector(whole.rows);
  set_threads(3);
  for (const int step : {1, 2, 3, 17}) {
    StateArrays state = empty_scan_state(shape);
    std::vector<float> rows;
    for (int first = 0; first < kScanRows; first += step) {
      const int count = std::min(step, kScanRows - first);
      // These rows once more as a sequence of its own.
      const ScanInputs part = cut_scan(inputs, first, count);
      const auto twice = [](const mx::array& x) { return mx::concatenate({x, x}, 0); };
      const auto result = selective_scan(
          {twice(part.rows), twice(part.steps)},
          weights,
          shape,
          {{0, count, empty_scan_state(shape)}, {count, count, state}}
      );
      const auto found = to_vector(result.rows);
      rows.insert(rows.end(), found.begin() + count * shape.outputs(), found.end());
      state = result.states[1];
    }
    EXPECT_EQ(rows, expected) << step;
    EXPECT_EQ(to_vector(state[1]), to_vector(whole.states[0][1]));
    EXPECT_EQ(to_vector(state[0]), to_vector(whole.states[0][0]));
  }
}

// Rows may be columns of a wider product.
TEST_P(SelectiveScanTest, ReadsColumnsWhereTheyLie) {
  const ScanShape shape = scan_shape(8, 16);
  const ScanWeights weights = scan_weights(shape);
  const ScanInputs inputs = scan_inputs(shape);
  const auto joined = mx::concatenate({inputs.steps, inputs.rows}, 1);
  const ScanInputs sliced = {
      mx::slice(joined, {0, shape.heads}, joined.shape()),
      mx::slice(joined, {0, 0}, {kScanRows, shape.heads}),
  };
  const std::vector<RecurrentSpan> spans = {{0, kScanRows, empty_scan_state(shape)}};
  EXPECT_EQ(
      to_vector(selective_scan(sliced, weights, shape, spans).rows),
      to_vector(selective_scan(inputs, weights, shape, spans).rows)
  );
}

TEST(SelectiveScan, RefusesSpansThatDoNotFit) {
  const ScanShape shape = scan_shape(8, 16);
  const ScanInputs inputs = scan_inputs(shape);
  const StateArrays state = empty_scan_state(shape);
  const StateArrays other = empty_scan_state(scan_shape(8, 15));
  for (const auto& spans : std::vector<std::vector<RecurrentSpan>>{
           {},
           {{0, kScanRows - 1, state}},
           {{0, 2, state}, {3, kScanRows - 3, state}},
           {{0, kScanRows, other}},
           {{0, kScanRows, {state[0]}}},
       }) {
    EXPECT_THROW(selective_scan(inputs, scan_weights(shape), shape, spans), Error);
  }
}

}  // namespace
}  // namespace saker::kernels
