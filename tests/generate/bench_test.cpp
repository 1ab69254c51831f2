// SPDX-License-Identifier: Apache-2.0
#include "saker/generate/bench.h"

#include "saker/base/error.h"

#include "tests/support/fake_model.h"
#include <gtest/gtest.h>

#include <vector>

namespace saker::generate {
namespace {

using saker::testing::FakeModel;

TEST(Bench, RunsExactlyTheRowsItCounts) {
  const FakeModel model;
  std::vector<int> progress;
  const BenchRates rates = run_bench(
      model,
      {.prompt_tokens = 20,
       .generation_tokens = 6,
       .batch = 3,
       .depth = 10,
       .repetitions = 2,
       .prefill_step = 512},
      [&](int done, int total) {
        progress.push_back(done);
        EXPECT_EQ(total, 3);
      }
  );
  EXPECT_EQ(rates.prompt_tps.size(), 2U);
  EXPECT_EQ(rates.generation_tps.size(), 2U);
  EXPECT_EQ(progress, (std::vector<int>{1, 2, 3}));
  // Per repetition: depth, prompt, then one row of each sequence per generated token.
  ASSERT_EQ(model.passes.size(), 3U * (1 + 1 + 6));
  EXPECT_EQ(model.passes[0].rows, 30);
  EXPECT_EQ(model.passes[1].rows, 60);
  for (std::size_t i = 2; i < 8; ++i) {
    EXPECT_EQ(model.passes[i].rows, 3);
    EXPECT_EQ(model.passes[i].spans, 3);
  }
  for (const double rate : rates.generation_tps) {
    EXPECT_GT(rate, 0.0);
  }
}

TEST(Bench, OnlyPromptOrOnlyGeneration) {
  const FakeModel model;
  const BenchRates prompt =
      run_bench(model, {.prompt_tokens = 5, .generation_tokens = 0, .repetitions = 1}, {});
  EXPECT_EQ(prompt.prompt_tps.size(), 1U);
  EXPECT_TRUE(prompt.generation_tps.empty());
  const BenchRates generation =
      run_bench(model, {.prompt_tokens = 0, .generation_tokens = 5, .repetitions = 1}, {});
  EXPECT_TRUE(generation.prompt_tps.empty());
  EXPECT_EQ(generation.generation_tps.size(), 1U);
}

TEST(Bench, RefusesWhatTheContextCannotHold) {
  const FakeModel model({.context_length = 100});
  EXPECT_THROW(run_bench(model, {.prompt_tokens = 90, .generation_tokens = 20}, {}), Error);
  EXPECT_THROW(
      run_bench(model, {.prompt_tokens = 1, .generation_tokens = 1, .batch = 0}, {}), Error
  );
  EXPECT_THROW(run_bench(model, {.prompt_tokens = -1}, {}), Error);
}

}  // namespace
}  // namespace saker::generate
