// SPDX-License-Identifier: Apache-2.0
#include "saker/score/token_scores.h"

#include "saker/base/error.h"
#include "saker/base/log_prob.h"

#include "tests/support/fake_model.h"
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace saker::score {
namespace {

using saker::testing::FakeModel;
using Ids = std::vector<std::int32_t>;

Ids some_tokens(int count) {
  Ids tokens;
  for (int i = 0; i < count; ++i) {
    tokens.push_back((i * 37 + i * i) % 97);
  }
  return tokens;
}

TEST(TokenScores, AreTheLogSoftmaxOfEachPrefix) {
  const FakeModel model;
  const Ids tokens = some_tokens(30);
  const TokenScores scores = score_tokens(model, tokens, {});
  ASSERT_EQ(scores.logprobs.size(), tokens.size());
  EXPECT_FALSE(scores.logprobs[0]);
  double sum = 0.0;
  for (std::size_t i = 1; i < tokens.size(); ++i) {
    const std::vector<float> logits =
        model.logits(Ids(tokens.begin(), tokens.begin() + static_cast<long>(i)));
    double total = 0.0;
    for (const float x : logits) {
      total += std::exp(static_cast<double>(x));
    }
    const double expected = logits[static_cast<std::size_t>(tokens[i])] - std::log(total);
    EXPECT_NEAR(*scores.logprobs[i], expected, 1e-12);
    sum += *scores.logprobs[i];
  }
  EXPECT_EQ(scores.sum, sum);
  EXPECT_EQ(scores.mean, sum / 29);
  EXPECT_FALSE(scores.is_greedy);
  EXPECT_FALSE(scores.next);
}

TEST(TokenScores, ChunksDoNotMatterAndLogitsAreBounded) {
  const FakeModel model;
  const Ids tokens = some_tokens(1000);
  const TokenScores whole = score_tokens(model, tokens, {.top_k = 3, .prefill_step = 1000});
  EXPECT_EQ(model.most_logit_rows, kScoreRows);
  for (const int step : {1, 7, 64, 512}) {
    const TokenScores chunked = score_tokens(model, tokens, {.top_k = 3, .prefill_step = step});
    EXPECT_EQ(chunked.logprobs, whole.logprobs);
    EXPECT_EQ(chunked.sum, whole.sum);
    EXPECT_EQ(chunked.next->logprobs, whole.next->logprobs);
  }
}

TEST(TokenScores, PromptTokensAreOnlySeen) {
  const FakeModel model;
  const Ids tokens = some_tokens(200);
  const TokenScores all = score_tokens(model, tokens, {});
  model.most_logit_rows = 0;
  const TokenScores some = score_tokens(model, tokens, {.first_scored = 190});
  EXPECT_LE(model.most_logit_rows, kScoreRows);
  double sum = 0.0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    EXPECT_EQ(some.logprobs[i].has_value(), i >= 190);
    if (i >= 190) {
      EXPECT_EQ(some.logprobs[i], all.logprobs[i]);
      sum += *all.logprobs[i];
    }
  }
  EXPECT_EQ(some.sum, sum);
  EXPECT_EQ(some.mean, sum / 10);
}

TEST(TokenScores, GreedyContinuationsAreKnown) {
  const FakeModel model;
  Ids tokens = {4, 2};
  for (int i = 0; i < 5; ++i) {
    tokens.push_back(best_token(model.logits(tokens)));
  }
  EXPECT_TRUE(score_tokens(model, tokens, {.first_scored = 2}).is_greedy);
  tokens[4] = (tokens[4] + 1) % 97;
  EXPECT_FALSE(score_tokens(model, tokens, {.first_scored = 2}).is_greedy);
}

TEST(TokenScores, OneTokenHasOnlyANextDistribution) {
  const FakeModel model;
  const Ids tokens = {5};
  const TokenScores scores = score_tokens(model, tokens, {.top_k = 97});
  EXPECT_EQ(scores.logprobs.size(), 1U);
  EXPECT_EQ(scores.sum, 0.0);
  EXPECT_EQ(scores.mean, 0.0);
  EXPECT_EQ(scores.next->token_ids.size(), 97U);
  EXPECT_FALSE(scores.next->tail_logprob);
  EXPECT_FALSE(scores.next->tail_underflow);
}

TEST(TokenScores, RefusesBadSequences) {
  const FakeModel model({.context_length = 10});
  EXPECT_THROW(score_tokens(model, Ids{}, {}), Error);
  EXPECT_THROW(score_tokens(model, Ids{97}, {}), Error);
  EXPECT_THROW(score_tokens(model, Ids(11, 1), {}), Error);
  EXPECT_THROW(score_tokens(model, Ids{1}, {.top_k = -1}), Error);
  EXPECT_THROW(score_tokens(model, Ids{1}, {.prefill_step = 0}), Error);
}

}  // namespace
}  // namespace saker::score
