// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/ops/recurrent/gated_delta.h"

#include "saker/base/error.h"
#include "saker/kernels/gpu/backend.h"

#include "tests/kernels/instruction_sets.h"
#include "tests/kernels/rows.h"
#include "tests/kernels/saved_machine.h"
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace saker::kernels {
namespace {

constexpr int kRows = 40;

DeltaShape shape_of(int key_dim, int value_dim) {
  return {.key_heads = 2, .value_heads = 4, .key_dim = key_dim, .value_dim = value_dim, .taps = 4};
}

mx::array random_vector(int count, unsigned seed) {
  return mx::reshape(random_rows(1, count, seed), {count});
}

DeltaWeights random_weights(const DeltaShape& shape) {
  return {
      random_rows(shape.taps, shape.channels(), 1),
      mx::exp(random_vector(shape.value_heads, 2)),
      random_vector(shape.value_heads, 3),
  };
}

DeltaInputs random_inputs(const DeltaShape& shape) {
  return {
      random_rows(kRows, shape.channels(), 4),
      random_rows(kRows, shape.value_heads, 5),
      random_rows(kRows, shape.value_heads, 6),
  };
}

DeltaInputs cut(const DeltaInputs& inputs, int first, int count) {
  const auto rows = [&](const mx::array& x) {
    return mx::slice(x, {first, 0}, {first + count, x.shape(1)});
  };
  return {rows(inputs.rows), rows(inputs.a), rows(inputs.b)};
}

class GatedDeltaTest : public InstructionSetTest {};

INSTANTIATE_TEST_SUITE_P(
    Sets,
    GatedDeltaTest,
    testing::ValuesIn(instruction_sets()),
    [](const auto& set) { return set.param; }
);

TEST_P(GatedDeltaTest, IsTheReferences) {
  for (const auto& [key_dim, value_dim] : {std::pair(16, 64), {10, 22}, {7, 96}, {1, 1}}) {
    const DeltaShape shape = shape_of(key_dim, value_dim);
    const DeltaWeights weights = random_weights(shape);
    const DeltaInputs inputs = random_inputs(shape);
    const auto before = gated_delta_reference(
        cut(inputs, 0, 5), weights, shape, {{0, 5, empty_delta_state(shape)}}
    );
    const std::vector<DeltaSpan> spans = {
        {0, 1, empty_delta_state(shape)},
        {1, kRows - 1, before.states.front()},
    };
    const auto result = gated_delta(inputs, weights, shape, spans);
    const auto expected = gated_delta_reference(inputs, weights, shape, spans);
    const auto near = [](const mx::array& a, const mx::array& b) {
      return mx::max(mx::abs(a - b)).item<float>() < 2e-5F;
    };
    EXPECT_TRUE(near(result.rows, expected.rows)) << key_dim << ' ' << value_dim;
    for (std::size_t i = 0; i < spans.size(); ++i) {
      EXPECT_TRUE(near(result.states[i].inputs, expected.states[i].inputs));
      EXPECT_TRUE(near(result.states[i].memory, expected.states[i].memory));
    }
  }
}

// A row's bits are the same however its sequence is cut, whatever is beside it and on however many
// threads.
TEST_P(GatedDeltaTest, CutsChangeNoBit) {
  const DeltaShape shape = shape_of(16, 80);
  const DeltaWeights weights = random_weights(shape);
  const DeltaInputs inputs = random_inputs(shape);
  set_threads(1);
  const auto whole = gated_delta(inputs, weights, shape, {{0, kRows, empty_delta_state(shape)}});
  const auto expected = to_vector(whole.rows);
  set_threads(3);
  for (const int step : {1, 2, 3, 17}) {
    DeltaState state = empty_delta_state(shape);
    std::vector<float> rows;
    for (int first = 0; first < kRows; first += step) {
      const int count = std::min(step, kRows - first);
      // The same rows once more as a sequence of its own.
      const DeltaInputs part = cut(inputs, first, count);
      const auto twice = [](const mx::array& x) { return mx::concatenate({x, x}, 0); };
      const auto result = gated_delta(
          {twice(part.rows), twice(part.a), twice(part.b)},
          weights,
          shape,
          {{0, count, empty_delta_state(shape)}, {count, count, state}}
      );
      const auto found = to_vector(result.rows);
      rows.insert(rows.end(), found.begin() + count * shape.outputs(), found.end());
      state = result.states[1];
    }
    EXPECT_EQ(rows, expected) << step;
    EXPECT_EQ(to_vector(state.memory), to_vector(whole.states[0].memory));
    EXPECT_EQ(to_vector(state.inputs), to_vector(whole.states[0].inputs));
  }
}

// Rows may be columns of a wider product.
TEST_P(GatedDeltaTest, ReadsColumnsWhereTheyLie) {
  const DeltaShape shape = shape_of(8, 16);
  const DeltaWeights weights = random_weights(shape);
  const DeltaInputs inputs = random_inputs(shape);
  const auto joined = mx::concatenate({inputs.b, inputs.rows, inputs.a}, 1);
  const auto columns = [&](int first, int count) {
    return mx::slice(joined, {0, first}, {kRows, first + count});
  };
  const DeltaInputs sliced = {
      columns(shape.value_heads, shape.channels()),
      columns(shape.value_heads + shape.channels(), shape.value_heads),
      columns(0, shape.value_heads),
  };
  const std::vector<DeltaSpan> spans = {{0, kRows, empty_delta_state(shape)}};
  EXPECT_EQ(
      to_vector(gated_delta(sliced, weights, shape, spans).rows),
      to_vector(gated_delta(inputs, weights, shape, spans).rows)
  );
}

TEST(GatedDelta, RefusesSpansThatDoNotFit) {
  const DeltaShape shape = shape_of(8, 16);
  const DeltaInputs inputs = random_inputs(shape);
  const DeltaState state = empty_delta_state(shape);
  const DeltaState other = empty_delta_state(shape_of(8, 15));
  for (const auto& spans : std::vector<std::vector<DeltaSpan>>{
           {},
           {{0, kRows - 1, state}},
           {{0, 2, state}, {3, kRows - 3, state}},
           {{0, kRows, other}},
       }) {
    EXPECT_THROW(gated_delta(inputs, random_weights(shape), shape, spans), Error);
  }
}

}  // namespace
}  // namespace saker::kernels
