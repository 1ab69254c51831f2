// SPDX-License-Identifier: Apache-2.0
#include "saker/sample/processors.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace saker::sample {
namespace {

std::vector<float> processed(
    const SamplingOptions& options,
    const std::vector<std::int32_t>& context,
    std::vector<float> logits
) {
  Processors processors;
  // Twice, so that scratch left over from a first call would show.
  std::vector<float> first = logits;
  processors.apply(options, {}, context, first);
  processors.apply(options, {}, context, logits);
  EXPECT_EQ(first, logits);
  return logits;
}

TEST(Processors, NeededOnlyWhereOneIsOn) {
  SamplingOptions options;
  EXPECT_FALSE(Processors::needed(options));
  options.repetition_penalty = 0.0;
  EXPECT_FALSE(Processors::needed(options));
  options.repetition_penalty = 1.1;
  EXPECT_TRUE(Processors::needed(options));
  EXPECT_TRUE(Processors::needed({.presence_penalty = -1.0}));
  EXPECT_TRUE(Processors::needed({.frequency_penalty = 0.5}));
  EXPECT_TRUE(Processors::needed({.logit_bias = {{1, 0.0}}}));
  EXPECT_TRUE(Processors::needed({.suppress_tokens = {1}}));
}

TEST(Processors, RepetitionDividesPositiveAndMultipliesNegativeOncePerId) {
  SamplingOptions options;
  options.repetition_penalty = 2.0;
  EXPECT_EQ(
      processed(options, {0, 1, 1, 1, 2}, {4.0F, -3.0F, 0.0F, 5.0F}),
      (std::vector<float>{2.0F, -6.0F, 0.0F, 5.0F})
  );
}

TEST(Processors, PresenceOncePerIdFrequencyPerOccurrence) {
  SamplingOptions options;
  options.presence_penalty = 0.5;
  EXPECT_EQ(processed(options, {1, 1, 1, 2}, {1, 1, 1, 1}), (std::vector<float>{1, 0.5F, 0.5F, 1}));
  options = {};
  options.frequency_penalty = 0.5;
  EXPECT_EQ(
      processed(options, {1, 1, 1, 2}, {1, 1, 1, 1}), (std::vector<float>{1, -0.5F, 0.5F, 1})
  );
}

TEST(Processors, WindowsAreTheLastTokensAndZeroMeansAll) {
  SamplingOptions options;
  options.presence_penalty = 1.0;
  options.presence_context_size = 2;
  EXPECT_EQ(processed(options, {0, 1, 2}, {0, 0, 0}), (std::vector<float>{0, -1, -1}));
  options.presence_context_size = 0;
  EXPECT_EQ(processed(options, {0, 1, 2}, {0, 0, 0}), (std::vector<float>{-1, -1, -1}));
  // The default window holds 20 tokens.
  std::vector<std::int32_t> context(21, 1);
  context[0] = 0;
  options.presence_context_size = SamplingOptions{}.presence_context_size;
  EXPECT_EQ(processed(options, context, {0, 0, 0}), (std::vector<float>{0, -1, 0}));
}

TEST(Processors, SuppressedTokensAreTakenOutWhateverTheirBias) {
  constexpr float kOut = -std::numeric_limits<float>::infinity();
  SamplingOptions options;
  options.logit_bias = {{1, 50.0}};
  options.suppress_tokens = {1, 3, 70'000};
  EXPECT_EQ(processed(options, {0}, {0, 1, 2, 3}), (std::vector<float>{0, kOut, 2, kOut}));
}

// bias, then repetition on the biased value, then presence, then frequency.
TEST(Processors, OrderIsFixed) {
  SamplingOptions options;
  options.logit_bias = {{0, 6.0}};
  options.repetition_penalty = 2.0;
  options.presence_penalty = 1.0;
  options.frequency_penalty = 0.25;
  EXPECT_EQ(processed(options, {0, 0}, {-2.0F, 1.0F}), (std::vector<float>{0.5F, 1.0F}));
}

TEST(Processors, IdsBeyondTheRowAreSkipped) {
  SamplingOptions options;
  options.frequency_penalty = 1.0;
  EXPECT_EQ(processed(options, {7, -1, 1}, {0, 0}), (std::vector<float>{0, -1}));
}

TEST(Processors, MinTokensKeepsTheAnswerFromEnding) {
  const SamplingOptions options{.min_tokens = 2};
  EXPECT_TRUE(Processors::needed(options));
  // Ids beyond the row come from a model's files.
  const NamedTokens tokens{.stop_tokens = {1, 900, -1}, .prompt_size = 3};
  const std::vector<float> logits = {1.0F, 2.0F, 3.0F};
  const std::vector<float> kept_away = {1.0F, -std::numeric_limits<float>::infinity(), 3.0F};
  const std::vector<std::int32_t> context = {0, 0, 0, 2, 2};
  for (const std::size_t size : {3U, 4U, 5U}) {
    std::vector<float> row = logits;
    Processors().apply(options, tokens, std::span(context).first(size), row);
    EXPECT_EQ(row, size < 5 ? kept_away : logits) << size;
  }
}

}  // namespace
}  // namespace saker::sample
