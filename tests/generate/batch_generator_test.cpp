// SPDX-License-Identifier: Apache-2.0
#include "saker/generate/batch_generator.h"

#include "saker/base/error.h"
#include "saker/base/log_prob.h"
#include "saker/cache/prefix_cache.h"
#include "saker/load/checkpoint.h"

#include "tests/generate/runs.h"
#include "tests/support/fake_model.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <memory>
#include <new>
#include <random>
#include <string>
#include <vector>

namespace saker::generate {
namespace {

using saker::testing::FakeModel;
using saker::testing::FakeModelOptions;

TEST(BatchGenerator, GreedyFollowsTheModel) {
  const FakeModel model;
  const Outcome outcome = run_alone(model, request_of({3, 1, 4}, 6));
  Ids context = {3, 1, 4};
  for (const std::int32_t token : outcome.tokens) {
    EXPECT_EQ(token, best_token(model.logits(context)));
    context.push_back(token);
  }
  EXPECT_EQ(outcome.tokens.size(), 6U);
  EXPECT_EQ(outcome.end.reason, EndReason::kLength);
  EXPECT_EQ(outcome.end.context, context);
  // The last token's row was never run.
  EXPECT_EQ(outcome.end.cache->offset(), 8);
  EXPECT_EQ(outcome.ends, 1);
}

TEST(BatchGenerator, PriorityAndUsersDecideWhoBegins) {
  const FakeModel model;
  std::vector<Outcome> outcomes(4);
  BatchGenerator generator(model, {.max_batch = 1});
  const auto add = [&](std::size_t index, int priority, const char* user) {
    SequenceRequest request = request_of({1, 2, static_cast<std::int32_t>(index)}, 2);
    request.priority = priority;
    request.user = user;
    generator.add(std::move(request), std::make_unique<Recorder>(outcomes[index]));
  };
  add(0, 0, "a");
  generator.step();
  add(1, 0, "a");
  add(2, 0, "b");
  add(3, 1, "a");
  std::vector<std::size_t> ended;
  while (!generator.idle()) {
    generator.step();
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
      if (outcomes[i].ends == 1 && std::ranges::find(ended, i) == ended.end()) {
        ended.push_back(i);
      }
    }
  }
  // The first one waits for the urgent one, too.
  EXPECT_EQ(ended, (std::vector<std::size_t>{3, 0, 1, 2}));
}

TEST(BatchGenerator, ADeadlineEndsAnAnswerWithWhatItHas) {
  const FakeModel model;
  std::vector<Outcome> outcomes(3);
  BatchGenerator generator(model, {.max_batch = 2});
  const auto add = [&](std::size_t index, std::chrono::steady_clock::time_point deadline) {
    SequenceRequest request = request_of({1, 2, 3}, 4000);
    request.deadline = deadline;
    generator.add(std::move(request), std::make_unique<Recorder>(outcomes[index]));
  };
  const auto now = std::chrono::steady_clock::now();
  add(0, now - std::chrono::seconds(1));
  add(1, now + std::chrono::milliseconds(100));
  add(2, std::chrono::steady_clock::time_point::max());
  generator.step();
  EXPECT_EQ(outcomes[0].end.reason, EndReason::kDeadline);
  EXPECT_TRUE(outcomes[0].tokens.empty());
  while (outcomes[1].ends == 0) {
    generator.step();
  }
  EXPECT_EQ(outcomes[1].end.reason, EndReason::kDeadline);
  EXPECT_GT(outcomes[1].tokens.size(), 0U);
  EXPECT_EQ(outcomes[2].ends, 0);
}

TEST(BatchGenerator, HundredRequestsInABatchEqualTheirSingleRuns) {
  const FakeModel model;
  std::mt19937_64 random(20);
  constexpr int kCount = 100;
  std::vector<SequenceRequest> requests;
  requests.reserve(kCount);
  for (int i = 0; i < kCount; ++i) {
    requests.push_back(random_request(random, model.info().vocab_size));
  }
  for (const int prefill_step : {1, 7, 64, 512}) {
    model.passes.clear();
    std::vector<Outcome> together(requests.size());
    BatchGenerator generator(model, {.prefill_step = prefill_step, .max_batch = 8});
    for (std::size_t i = 0; i < requests.size(); ++i) {
      // Some come while others run.
      if (i % 3 == 0) {
        generator.step();
      }
      generator.add(copy_of(requests[i]), std::make_unique<Recorder>(together[i]));
    }
    while (!generator.idle()) {
      generator.step();
    }
    int most_spans = 0;
    for (const FakeModel::Pass& pass : model.passes) {
      most_spans = std::max(most_spans, pass.spans);
      EXPECT_LE(pass.rows, prefill_step + 8);
    }
    // One prompt row a step lets short answers leave before the batch is full.
    EXPECT_GE(most_spans, prefill_step == 1 ? 2 : 8);
    for (std::size_t i = 0; i < requests.size(); ++i) {
      SCOPED_TRACE("request " + std::to_string(i));
      EXPECT_EQ(together[i].ends, 1);
      expect_same(together[i], run_alone(model, copy_of(requests[i])));
    }
  }
}

// Those that have begun after one step, of two prompts with so many tokens in common.
int begun_together(const models::Model& model, int common) {
  cache::PrefixCacheOptions options;
  options.interval = 64;
  cache::PrefixCache prefixes(options);
  BatchGenerator generator(model, {.prefill_step = 512, .max_batch = 2}, &prefixes);
  std::array<Outcome, 2> outcomes;
  for (const int i : {0, 1}) {
    Ids prompt(static_cast<std::size_t>(common), 7);
    prompt.insert(prompt.end(), 5, i);
    SequenceRequest request = request_of(std::move(prompt), 4);
    request.prefix_key = "one";
    generator.add(std::move(request), std::make_unique<Recorder>(outcomes.at(i)));
  }
  generator.step();
  const auto begun = std::ranges::count_if(outcomes, [](const Outcome& outcome) {
    return !outcome.progress.empty();
  });
  while (!generator.idle()) {
    generator.step();
  }
  return static_cast<int>(begun);
}

TEST(BatchGenerator, PromptsWaitForRowsThatTheyCanStartFrom) {
  const std::filesystem::path goldens = std::filesystem::path(SAKER_SOURCE_DIR) / "tests/golden";
  const auto plain = load::load_checkpoint(goldens / "qwen3").model;
  EXPECT_EQ(begun_together(*plain, 50), 1);
  const auto recurrent = load::load_checkpoint(goldens / "qwen3_5").model;
  EXPECT_EQ(begun_together(*recurrent, 50), 2);
  EXPECT_EQ(begun_together(*recurrent, 100), 1);
}

TEST(BatchGenerator, LogprobsAreThoseOfTheRawLogits) {
  const FakeModel model;
  SequenceRequest request = request_of({5, 6}, 4);
  request.logprobs = 3;
  request.sampling.temperature = 1.5;
  request.sampling.logit_bias = {{7, 50.0}};
  const Outcome outcome = run_alone(model, std::move(request));
  Ids context = {5, 6};
  for (const GeneratedToken& token : outcome.details) {
    const std::vector<float> logits = model.logits(context);
    const double log_sum = log_sum_exp(logits);
    EXPECT_EQ(token.id, 7);
    EXPECT_EQ(token.logprob, log_prob(logits, 7, log_sum));
    EXPECT_EQ(token.top, top_tokens(logits, 3, log_sum));
    context.push_back(token.id);
  }
}

TEST(BatchGenerator, StopTokenEndsAndIsNoPartOfTheAnswer) {
  const FakeModel model;
  const Outcome whole = run_alone(model, request_of({2, 7, 1}, 8));
  SequenceRequest request = request_of({2, 7, 1}, 8);
  request.stop_tokens = {whole.tokens[3]};
  const Outcome outcome = run_alone(model, std::move(request));
  EXPECT_EQ(outcome.end.reason, EndReason::kStopToken);
  EXPECT_EQ(outcome.tokens, Ids(whole.tokens.begin(), whole.tokens.begin() + 3));
}

TEST(BatchGenerator, ListenerStopsAndCancelEnds) {
  const FakeModel model;
  Outcome stopped;
  Outcome cancelled;
  Outcome waiting;
  BatchGenerator generator(model, {.max_batch = 2});
  generator.add(request_of({1}, 100), std::make_unique<Recorder>(stopped, 3));
  const auto id = generator.add(request_of({2}, 100), std::make_unique<Recorder>(cancelled));
  const auto waiting_id = generator.add(request_of({3}), std::make_unique<Recorder>(waiting));
  generator.step();
  generator.step();
  generator.cancel(id);
  generator.cancel(waiting_id);
  generator.cancel(12345);
  while (!generator.idle()) {
    generator.step();
  }
  EXPECT_EQ(stopped.end.reason, EndReason::kStopped);
  EXPECT_EQ(stopped.tokens.size(), 3U);
  EXPECT_EQ(cancelled.end.reason, EndReason::kCancelled);
  EXPECT_EQ(cancelled.tokens.size(), 2U);
  EXPECT_EQ(cancelled.end.cache->offset(), 2);
  EXPECT_EQ(waiting.end.reason, EndReason::kCancelled);
  EXPECT_TRUE(waiting.tokens.empty());
  EXPECT_EQ(waiting.ends, 1);
}

TEST(BatchGenerator, PrefillStepBoundsPromptRowsAndReportsProgress) {
  const FakeModel model;
  const Outcome outcome = run_alone(model, request_of(Ids(10, 1), 1), 4);
  EXPECT_EQ(outcome.progress, (std::vector<int>{4, 8, 10}));
  ASSERT_EQ(model.passes.size(), 3U);
  EXPECT_EQ(model.passes[0].rows, 4);
  EXPECT_EQ(model.passes[2].rows, 2);
}

TEST(BatchGenerator, GeneratingGoesOnBesideALongPrompt) {
  const FakeModel model;
  Outcome first;
  Outcome second;
  BatchGenerator generator(model, {.prefill_step = 8, .max_batch = 2});
  generator.add(request_of({1}, 10), std::make_unique<Recorder>(first));
  generator.step();
  generator.add(request_of(Ids(64, 2), 2), std::make_unique<Recorder>(second));
  for (int i = 0; i < 5; ++i) {
    generator.step();
  }
  EXPECT_EQ(first.tokens.size(), 6U);
  EXPECT_EQ(second.progress.back(), 40);
}

TEST(BatchGenerator, AFailingSequenceEndsAlone) {
  const FakeModel model({.poison = 13});
  Outcome good;
  Outcome bad;
  BatchGenerator generator(model, {.prefill_step = 4, .max_batch = 2});
  generator.add(request_of({1, 2, 3}, 6), std::make_unique<Recorder>(good));
  generator.add(request_of({1, 2, 3, 4, 13}, 6), std::make_unique<Recorder>(bad));
  while (!generator.idle()) {
    generator.step();
  }
  EXPECT_EQ(bad.end.reason, EndReason::kFailed);
  EXPECT_THROW(std::rethrow_exception(bad.end.error), std::bad_alloc);
  // What was committed before stays usable.
  EXPECT_LT(bad.end.cache->offset(), 5);
  expect_same(good, run_alone(model, request_of({1, 2, 3}, 6)));
}

TEST(BatchGenerator, AFailingSequenceIsFoundByHalves) {
  const FakeModel model({.poison = 13});
  constexpr int kCount = 32;
  std::vector<Outcome> outcomes(kCount);
  BatchGenerator generator(model, {.prefill_step = 64 * kCount, .max_batch = kCount});
  for (int i = 0; i < kCount; ++i) {
    Outcome& outcome = outcomes[static_cast<std::size_t>(i)];
    generator.add(request_of({1, 2, i == 21 ? 13 : 3}, 6), std::make_unique<Recorder>(outcome));
  }
  generator.step();
  // The whole pass fails, then one of two halves each time, five times.
  EXPECT_EQ(model.passes.size(), 11U);
  while (!generator.idle()) {
    generator.step();
  }
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    EXPECT_EQ(outcomes[i].end.reason, i == 21 ? EndReason::kFailed : EndReason::kLength) << i;
  }
}

TEST(BatchGenerator, ContinuesTheRowsOfAGivenCache) {
  const FakeModel model;
  Outcome first = run_alone(model, request_of({9, 8, 7}, 4));
  SequenceRequest request = request_of(first.end.context, 4);
  request.cache = std::move(first.end.cache);
  model.passes.clear();
  const Outcome outcome = run_alone(model, std::move(request));
  EXPECT_EQ(model.passes.front().rows, 1);
  expect_same(outcome, run_alone(model, request_of(first.end.context, 4)));
}

TEST(BatchGenerator, EndsWhereTheContextIsFull) {
  const FakeModel model({.context_length = 10});
  const Outcome outcome = run_alone(model, request_of(Ids(7, 1), 100));
  EXPECT_EQ(outcome.end.reason, EndReason::kLength);
  // Rows 0 to 9 exist; the last one still gives a token.
  EXPECT_EQ(outcome.tokens.size(), 4U);
  EXPECT_EQ(outcome.end.cache->offset(), 10);
  EXPECT_EQ(run_alone(model, request_of(Ids(10, 1), 100)).tokens.size(), 1U);
}

std::string refusal(const models::Model& model, SequenceRequest request) {
  Outcome outcome;
  BatchGenerator generator(model, {});
  try {
    generator.add(std::move(request), std::make_unique<Recorder>(outcome));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_TRUE(generator.idle());
    EXPECT_EQ(outcome.ends, 0);
    return error.what();
  }
  return "";
}

TEST(BatchGenerator, RefusesBadRequests) {
  using ::testing::AllOf;
  using ::testing::HasSubstr;
  const FakeModel model({.context_length = 10});
  EXPECT_THAT(refusal(model, request_of({})), HasSubstr("empty"));
  EXPECT_THAT(refusal(model, request_of(Ids(11, 1))), AllOf(HasSubstr("11"), HasSubstr("10")));
  EXPECT_THAT(refusal(model, request_of({97})), AllOf(HasSubstr("97"), HasSubstr("96")));
  EXPECT_THAT(refusal(model, request_of({-1})), HasSubstr("-1"));
  EXPECT_THAT(refusal(model, request_of({1}, 0)), HasSubstr("max_tokens"));
  SequenceRequest request = request_of({1});
  request.sampling.top_p = 3.0;
  EXPECT_THAT(refusal(model, std::move(request)), HasSubstr("top_p"));
  EXPECT_THROW(BatchGenerator(model, {.prefill_step = 0}), Error);
  EXPECT_THROW(BatchGenerator(model, {.max_batch = 0}), Error);
}

}  // namespace
}  // namespace saker::generate
