// SPDX-License-Identifier: Apache-2.0
#include "saker/base/log_prob.h"
#include "saker/sample/noise.h"
#include "saker/sample/sampler.h"

#include "tests/sample/log_rows.h"
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace saker::sample {
namespace {

// Both choose the same tokens at many positions.
void expect_same(
    const SamplingOptions& first, const SamplingOptions& second, const std::vector<float>& row
) {
  const int size = static_cast<int>(row.size());
  Sampler dynamic(first, size);
  Sampler fixed(second, size);
  for (int position = 0; position < 2000; ++position) {
    std::vector<float> copy = row;
    std::vector<float> other = row;
    ASSERT_EQ(dynamic.choose(copy, {}, position), fixed.choose(other, {}, position)) << position;
  }
}

// The temperatures are those of llama.cpp's llama_sampler_init_temp_ext on the same rows.
TEST(DynamicTemperature, GoesWithTheEntropy) {
  const auto flat = logs({.3, .25, .2, .15, .06, .04});
  const auto peaked = logs({.9, .04, .03, .02, .01});
  expect_same({.temperature = 1.0, .dynatemp_range = .5}, {.temperature = 1.399567}, flat);
  expect_same({.temperature = 1.0, .dynatemp_range = .5}, {.temperature = .781507}, peaked);
  expect_same({.temperature = .8, .dynatemp_range = 1.5}, {.temperature = 2.069014}, flat);
  expect_same(
      {.temperature = 1.0, .dynatemp_range = .5, .dynatemp_exponent = 2.0},
      {.temperature = .579246},
      peaked
  );
  expect_same(
      {.temperature = 1.0, .dynatemp_range = .5}, {.temperature = 1.5}, logs({.25, .25, .25, .25})
  );
}

TEST(DynamicTemperature, IsThatOfWhatFiltersLeave) {
  expect_same(
      {.temperature = 1.0, .top_k = 2, .dynatemp_range = .5},
      {.temperature = 1.5, .top_k = 2},
      logs({.4, .4, .1, .1})
  );
  Sampler only({.temperature = 1.0, .top_k = 1, .dynatemp_range = 1.0}, 3);
  std::vector<float> row = {0.0F, 2.0F, 1.0F};
  EXPECT_EQ(only.choose(row, {}, 0), 1);
}

TEST(DynamicTemperature, GreedyStaysGreedy) {
  Sampler sampler({.temperature = 0.0, .dynatemp_range = 2.0}, 3);
  for (int position = 0; position < 50; ++position) {
    std::vector<float> row = {1.0F, 1.01F, 1.0F};
    EXPECT_EQ(sampler.choose(row, {}, position), 1);
  }
}

// Without entropy the lower end of the range may be 0.
TEST(DynamicTemperature, RangesDownToZero) {
  Sampler sampler({.temperature = .5, .dynatemp_range = 2.0}, 3);
  for (int position = 0; position < 50; ++position) {
    std::vector<float> row = {0.0F, 500.0F, 0.0F};
    EXPECT_EQ(sampler.choose(row, {}, position), 1);
  }
}

}  // namespace
}  // namespace saker::sample
