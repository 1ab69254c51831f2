// SPDX-License-Identifier: Apache-2.0
#include "saker/score/token_scores.h"

#include "saker/base/error.h"
#include "saker/base/log_prob.h"

#include "tests/support/fake_model.h"
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace saker::score {
namespace {

using saker::testing::FakeModel;
using Ids = std::vector<std::int32_t>;

Ids some_tokens(int count, int seed = 0) {
  Ids tokens;
  for (int i = 0; i < count; ++i) {
    tokens.push_back((i * 37 + i * i + seed) % 97);
  }
  return tokens;
}

TokenScores score_one(
    const FakeModel& model, const ScoreJob& job, const ScoreOptions& options = {}
) {
  return score_batch(model, std::span(&job, 1), options).at(0);
}

void expect_same(const TokenScores& a, const TokenScores& b) {
  EXPECT_EQ(a.logprobs, b.logprobs);
  EXPECT_EQ(a.sum, b.sum);
  EXPECT_EQ(a.mean, b.mean);
  EXPECT_EQ(a.is_greedy, b.is_greedy);
  EXPECT_EQ(a.next, b.next);
}

int rows_run(const FakeModel& model) {
  return std::accumulate(
      model.passes.begin(),
      model.passes.end(),
      0,
      [](int sum, const auto& pass) { return sum + pass.rows; }
  );
}

TEST(TokenScores, AreTheLogSoftmaxOfEachPrefix) {
  const FakeModel model;
  const Ids tokens = some_tokens(30);
  const TokenScores scores = score_one(model, {.tokens = tokens});
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

TEST(TokenScores, ChunksDoNotMatter) {
  const FakeModel model;
  const ScoreJob job{.tokens = some_tokens(1000), .top_k = 3};
  const TokenScores whole = score_one(model, job, {.prefill_step = 1000});
  for (const int step : {1, 7, 64, 512}) {
    expect_same(score_one(model, job, {.prefill_step = step}), whole);
  }
}

TEST(TokenScores, LogitsAreBounded) {
  EXPECT_EQ(logit_rows(262144), 24);
  EXPECT_EQ(logit_rows(1 << 30), 1);
  const FakeModel model({.vocab_size = 1 << 20});
  score_one(model, {.tokens = some_tokens(40)});
  EXPECT_EQ(model.most_logit_rows, 6);
}

TEST(TokenScores, PromptTokensAreOnlySeen) {
  const FakeModel model;
  const Ids tokens = some_tokens(200);
  const TokenScores all = score_one(model, {.tokens = tokens});
  model.most_logit_rows = 0;
  const TokenScores some = score_one(model, {.tokens = tokens, .first_scored = 190});
  EXPECT_EQ(model.most_logit_rows, 10);
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

TEST(TokenScores, RowsThatNothingIsReadFromAreNotRun) {
  const FakeModel model;
  score_one(model, {.tokens = {1, 2, 3}});
  EXPECT_EQ(rows_run(model), 2);
  score_one(model, {.tokens = {5}});
  score_one(model, {.tokens = {5, 6}, .first_scored = 2});
  EXPECT_EQ(rows_run(model), 2);
  score_one(model, {.tokens = {5}, .top_k = 1});
  EXPECT_EQ(rows_run(model), 3);
}

TEST(TokenScores, GreedyContinuationsAreKnown) {
  const FakeModel model;
  Ids tokens = {4, 2};
  for (int i = 0; i < 5; ++i) {
    tokens.push_back(best_token(model.logits(tokens)));
  }
  EXPECT_TRUE(score_one(model, {.tokens = tokens, .first_scored = 2}).is_greedy);
  tokens[4] = (tokens[4] + 1) % 97;
  EXPECT_FALSE(score_one(model, {.tokens = tokens, .first_scored = 2}).is_greedy);
}

TEST(TokenScores, OneTokenHasOnlyANextDistribution) {
  const FakeModel model;
  const TokenScores scores = score_one(model, {.tokens = {5}, .top_k = 200});
  EXPECT_EQ(scores.logprobs.size(), 1U);
  EXPECT_EQ(scores.sum, 0.0);
  EXPECT_EQ(scores.mean, 0.0);
  EXPECT_EQ(scores.next->token_ids.size(), 97U);
  EXPECT_FALSE(scores.next->tail_logprob);
  EXPECT_FALSE(scores.next->tail_underflow);
}

TEST(TokenScores, RefusesBadSequences) {
  const FakeModel model({.context_length = 10});
  const auto refuses = [&](const ScoreJob& job, const ScoreOptions& options = {}) {
    EXPECT_THROW(score_one(model, job, options), Error);
  };
  refuses({});
  refuses({.tokens = {97}});
  refuses({.tokens = {-1}});
  refuses({.tokens = Ids(11, 1), .top_k = 1});
  refuses({.tokens = Ids(12, 1)});
  refuses({.tokens = {1}, .top_k = -1});
  refuses({.tokens = {1}}, {.prefill_step = 0});
  const std::vector<ScoreJob> jobs = {{.tokens = {1, 2}}, {.tokens = {97}}};
  EXPECT_THROW(score_batch(model, jobs, {}), Error);
}

// The last token of a sequence is fed only for what comes after it.
TEST(TokenScores, ALastTokenThatIsOnlyScoredNeedsNoPlaceInTheContext) {
  const FakeModel model({.context_length = 10});
  const Ids tokens = some_tokens(11, 0);
  const TokenScores scores = score_one(model, {.tokens = tokens});
  const TokenScores whole = score_one(FakeModel(), {.tokens = tokens});
  EXPECT_EQ(scores.logprobs, whole.logprobs);
}

TEST(ScoreBatch, ShortSequencesShareOnePass) {
  const FakeModel model;
  std::vector<ScoreJob> jobs;
  jobs.reserve(64);
  for (int i = 0; i < 64; ++i) {
    jobs.push_back({.tokens = some_tokens(2 + i % 3, i), .top_k = 5});
  }
  const std::vector<TokenScores> batch = score_batch(model, jobs, {});
  EXPECT_EQ(model.passes.size(), 1U);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    expect_same(batch[i], score_one(model, jobs[i]));
  }
}

TEST(ScoreBatch, ACommonPromptRunsOnce) {
  const FakeModel model;
  std::vector<ScoreJob> jobs;
  for (int i = 0; i < 4; ++i) {
    Ids tokens = some_tokens(300);
    tokens.insert(tokens.end(), {i, i + 1, 5});
    jobs.push_back({.tokens = tokens, .first_scored = 300});
  }
  const std::vector<TokenScores> batch = score_batch(model, jobs, {});
  EXPECT_EQ(rows_run(model), 300 + 4 * 2);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    expect_same(batch[i], score_one(model, jobs[i]));
  }
}

// Answers of one token each need no rows of their own.
TEST(ScoreBatch, ChoicesOfOneTokenNeedOnlyThePrompt) {
  const FakeModel model;
  std::vector<ScoreJob> jobs;
  for (int i = 0; i < 4; ++i) {
    Ids tokens = some_tokens(30);
    tokens.push_back(i);
    jobs.push_back({.tokens = tokens, .first_scored = 30});
  }
  score_batch(model, jobs, {});
  EXPECT_EQ(rows_run(model), 30);
}

// Caches of at most some branches are alive, yet all get done.
TEST(ScoreBatch, CachesAreBounded) {
  const FakeModel model;
  std::vector<ScoreJob> jobs;
  jobs.reserve(20);
  for (int i = 0; i < 20; ++i) {
    jobs.push_back({.tokens = some_tokens(40, i)});
  }
  // FakeModel keeps 4 bytes a row, and 64 rows at a time.
  const std::vector<TokenScores> batch = score_batch(model, jobs, {.cache_bytes = 3 * 64 * 4});
  int most = 0;
  for (const auto& pass : model.passes) {
    most = std::max(most, pass.spans);
  }
  EXPECT_EQ(most, 3);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    expect_same(batch[i], score_one(model, jobs[i]));
  }
}

// Whatever is beside it, shared with it, and however passes are cut: the bits of the single run.
RC_GTEST_PROP(ScoreBatch, GivesTheSingleRunsBits, ()) {
  const FakeModel model;
  const auto prefix = *rc::gen::container<Ids>(rc::gen::inRange<std::int32_t>(0, 97));
  const int count = *rc::gen::inRange(1, 12);
  std::vector<ScoreJob> jobs;
  for (int i = 0; i < count; ++i) {
    ScoreJob job;
    const int copies = *rc::gen::inRange(0, 4);
    for (int copy = 0; copy < copies; ++copy) {
      job.tokens.insert(job.tokens.end(), prefix.begin(), prefix.end());
    }
    const auto own =
        *rc::gen::nonEmpty(rc::gen::container<Ids>(rc::gen::inRange<std::int32_t>(0, 3)));
    job.tokens.insert(job.tokens.end(), own.begin(), own.end());
    job.first_scored = *rc::gen::inRange(0, static_cast<int>(job.tokens.size()) + 2);
    job.top_k = *rc::gen::element(0, 1, 200);
    jobs.push_back(std::move(job));
  }
  const ScoreOptions options{
      .prefill_step = *rc::gen::inRange(1, 100),
      .cache_bytes = static_cast<std::size_t>(*rc::gen::inRange(0, 2000)),
  };
  const std::vector<TokenScores> batch = score_batch(model, jobs, options);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    expect_same(batch[i], score_one(model, jobs[i]));
  }
}

}  // namespace
}  // namespace saker::score
