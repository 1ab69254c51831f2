// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/ops/recurrent/short_convolution.h"

#include "saker/base/error.h"
#include "saker/kernels/gpu/backend.h"

#include "tests/kernels/instruction_sets.h"
#include "tests/kernels/rows.h"
#include "tests/kernels/saved_machine.h"
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace saker::kernels {
namespace {

constexpr int kConvolvedRows = 30;

ConvolutionWeights kernel_of(int taps, int channels, bool bias) {
  ConvolutionWeights weights{random_rows(taps, channels, 1)};
  if (bias) {
    weights.bias = mx::reshape(random_rows(1, channels, 2), {channels});
  }
  return weights;
}

class ShortConvolutionTest : public InstructionSetTest {};

INSTANTIATE_TEST_SUITE_P(
    Sets,
    ShortConvolutionTest,
    testing::ValuesIn(instruction_sets()),
    [](const auto& set) { return set.param; }
);

TEST_P(ShortConvolutionTest, IsTheReferences) {
  for (const int channels : {1, 22, 600}) {
    for (const int taps : {1, 3, 4}) {
      const auto weights = kernel_of(taps, channels, taps == 4);
      const auto rows = random_rows(kConvolvedRows, 3 * channels, 3);
      const std::vector<RecurrentSpan> spans = {
          {0, 1, {random_rows(taps, channels, 4)}},
          {1, kConvolvedRows - 1, empty_convolution_state(taps, channels)},
      };
      std::vector<RecurrentSpan> own = spans;
      own[0].state[0] = mx::slice(own[0].state[0], {0, 0}, {taps - 1, channels});
      const auto result = short_convolution(rows, weights, own);
      const auto expected = short_convolution_reference(rows, weights, own);
      EXPECT_LT(mx::max(mx::abs(result.rows - expected.rows)).item<float>(), 2e-5F)
          << channels << ' ' << taps;
      for (std::size_t i = 0; taps > 1 && i < own.size(); ++i) {
        EXPECT_EQ(to_vector(result.states[i][0]), to_vector(expected.states[i][0]));
      }
    }
  }
}

// A row's bits are the same however its sequence is cut, and whatever is beside it.
TEST_P(ShortConvolutionTest, CutsChangeNoBit) {
  constexpr int kChannels = 70;
  const auto weights = kernel_of(3, kChannels, true);
  const auto rows = random_rows(kConvolvedRows, 3 * kChannels, 3);
  set_threads(1);
  const auto whole = short_convolution(
      rows, weights, {{0, kConvolvedRows, empty_convolution_state(3, kChannels)}}
  );
  set_threads(3);
  for (const int step : {1, 2, 7}) {
    StateArrays state = empty_convolution_state(3, kChannels);
    std::vector<float> found;
    for (int first = 0; first < kConvolvedRows; first += step) {
      const int count = std::min(step, kConvolvedRows - first);
      const auto part = mx::slice(rows, {first, 0}, {first + count, 3 * kChannels});
      const auto result = short_convolution(
          mx::concatenate({part, part}, 0),
          weights,
          {{0, count, empty_convolution_state(3, kChannels)}, {count, count, state}}
      );
      const auto both = to_vector(result.rows);
      found.insert(found.end(), both.begin() + count * kChannels, both.end());
      state = result.states[1];
    }
    EXPECT_EQ(found, to_vector(whole.rows)) << step;
    EXPECT_EQ(to_vector(state[0]), to_vector(whole.states[0][0]));
  }
}

TEST(ShortConvolution, RefusesRowsThatDoNotFit) {
  const auto weights = kernel_of(3, 8, false);
  const StateArrays state = empty_convolution_state(3, 8);
  EXPECT_THROW(short_convolution(random_rows(4, 23, 1), weights, {{0, 4, state}}), Error);
  EXPECT_THROW(short_convolution(random_rows(4, 24, 1), weights, {{0, 3, state}}), Error);
  EXPECT_THROW(
      short_convolution(random_rows(4, 24, 1), weights, {{0, 4, empty_convolution_state(4, 8)}}),
      Error
  );
}

}  // namespace
}  // namespace saker::kernels
