// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/ops/recurrent/kda.h"

#include "saker/base/error.h"
#include "saker/kernels/gpu/backend.h"

#include "tests/kernels/instruction_sets.h"
#include "tests/kernels/rows.h"
#include "tests/kernels/saved_machine.h"
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace saker::kernels {
namespace {

constexpr int kKdaRows = 40;

KdaShape kda_shape(int head_dim) {
  return {.heads = 3, .head_dim = head_dim, .taps = 4};
}

KdaWeights kda_weights(const KdaShape& shape) {
  const auto taps = [&](unsigned seed) { return random_rows(shape.taps, shape.width(), seed); };
  const auto vector = [](int count, unsigned seed) {
    return mx::reshape(random_rows(1, count, seed), {count});
  };
  return {
      .convolutions = {taps(1), taps(2), taps(3)},
      .decay_rate = mx::exp(vector(shape.heads, 4)),
      .step_bias = vector(shape.width(), 5),
  };
}

KdaInputs kda_inputs(const KdaShape& shape) {
  const auto wide = [&](unsigned seed) { return random_rows(kKdaRows, shape.width(), seed); };
  return {
      .rows = {wide(6), wide(7), wide(8)},
      .steps = wide(9),
      .shares = random_rows(kKdaRows, shape.heads, 10),
  };
}

template <typename Function>
KdaInputs each_input(const KdaInputs& inputs, Function change) {
  return {
      .rows = {change(inputs.rows[0]), change(inputs.rows[1]), change(inputs.rows[2])},
      .steps = change(inputs.steps),
      .shares = change(inputs.shares),
  };
}

KdaInputs cut_kda(const KdaInputs& inputs, int first, int count) {
  return each_input(inputs, [&](const mx::array& x) {
    return mx::slice(x, {first, 0}, {first + count, x.shape(1)});
  });
}

class KdaTest : public InstructionSetTest {};

INSTANTIATE_TEST_SUITE_P(Sets, KdaTest, testing::ValuesIn(instruction_sets()), [](const auto& set) {
  return set.param;
});

TEST_P(KdaTest, IsTheReferences) {
  for (const int head_dim : {64, 22, 7, 1, 96}) {
    const KdaShape shape = kda_shape(head_dim);
    const KdaWeights weights = kda_weights(shape);
    const KdaInputs inputs = kda_inputs(shape);
    const auto before =
        kda_reference(cut_kda(inputs, 0, 5), weights, shape, {{0, 5, empty_kda_state(shape)}});
    const std::vector<RecurrentSpan> spans = {
        {0, 1, empty_kda_state(shape)},
        {1, kKdaRows - 1, before.states.front()},
    };
    const auto result = kda(inputs, weights, shape, spans);
    const auto expected = kda_reference(inputs, weights, shape, spans);
    const auto difference = [](const mx::array& a, const mx::array& b) {
      return mx::max(mx::abs(a - b)).item<float>();
    };
    EXPECT_LT(difference(result.rows, expected.rows), 2e-5F) << head_dim;
    for (std::size_t i = 0; i < spans.size(); ++i) {
      for (std::size_t j = 0; j < expected.states[i].size(); ++j) {
        EXPECT_LT(difference(result.states[i][j], expected.states[i][j]), 2e-5F);
      }
    }
  }
}

// A row's bits are the same however its sequence is cut, whatever is beside it and on however many
// threads.
TEST_P(KdaTest, CutsChangeNoBit) {
  const KdaShape shape = kda_shape(80);
  const KdaWeights weights = kda_weights(shape);
  const KdaInputs inputs = kda_inputs(shape);
  set_threads(1);
  const auto whole = kda(inputs, weights, shape, {{0, kKdaRows, empty_kda_state(shape)}});
  const auto expected = to_vector(whole.rows);
  set_threads(3);
  for (const int step : {1, 2, 3, 17}) {
    StateArrays state = empty_kda_state(shape);
    std::vector<float> rows;
    for (int first = 0; first < kKdaRows; first += step) {
      const int count = std::min(step, kKdaRows - first);
      // These rows once more as a sequence of its own.
      const auto twice = each_input(cut_kda(inputs, first, count), [](const mx::array& x) {
        return mx::concatenate({x, x}, 0);
      });
      const auto result =
          kda(twice, weights, shape, {{0, count, empty_kda_state(shape)}, {count, count, state}});
      const auto found = to_vector(result.rows);
      rows.insert(rows.end(), found.begin() + std::ptrdiff_t{count} * shape.width(), found.end());
      state = result.states[1];
    }
    EXPECT_EQ(rows, expected) << step;
    for (std::size_t i = 0; i < state.size(); ++i) {
      EXPECT_EQ(to_vector(state[i]), to_vector(whole.states[0][i]));
    }
  }
}

// Rows may be columns of a wider product.
TEST_P(KdaTest, ReadsColumnsWhereTheyLie) {
  const KdaShape shape = kda_shape(16);
  const KdaInputs inputs = kda_inputs(shape);
  const auto joined = mx::concatenate(
      {inputs.shares, inputs.rows[0], inputs.rows[1], inputs.rows[2], inputs.steps}, 1
  );
  const auto columns = [&](int index) {
    const int first = shape.heads + index * shape.width();
    return mx::slice(joined, {0, first}, {kKdaRows, first + shape.width()});
  };
  const KdaInputs sliced{
      .rows = {columns(0), columns(1), columns(2)},
      .steps = columns(3),
      .shares = mx::slice(joined, {0, 0}, {kKdaRows, shape.heads}),
  };
  const std::vector<RecurrentSpan> spans = {{0, kKdaRows, empty_kda_state(shape)}};
  const KdaWeights weights = kda_weights(shape);
  EXPECT_EQ(
      to_vector(kda(sliced, weights, shape, spans).rows),
      to_vector(kda(inputs, weights, shape, spans).rows)
  );
}

TEST(Kda, RefusesSpansThatDoNotFit) {
  const KdaShape shape = kda_shape(8);
  const KdaInputs inputs = kda_inputs(shape);
  const StateArrays state = empty_kda_state(shape);
  for (const auto& spans : std::vector<std::vector<RecurrentSpan>>{
           {},
           {{0, kKdaRows - 1, state}},
           {{0, 2, state}, {3, kKdaRows - 3, state}},
           {{0, kKdaRows, empty_kda_state(kda_shape(9))}},
       }) {
    EXPECT_THROW(kda(inputs, kda_weights(shape), shape, spans), Error);
  }
}

}  // namespace
}  // namespace saker::kernels
