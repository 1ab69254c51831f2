// SPDX-License-Identifier: Apache-2.0
// Rounds of drafting and checking over a model whose logits are a hash of the whole context, with a
// drafter that knows the answers but for chosen places: what comes out is plain decoding's.
#include "saker/base/error.h"
#include "saker/generate/batch_generator.h"

#include "tests/generate/runs.h"
#include "tests/support/fake_model.h"
#include "tests/support/scripted_drafter.h"
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace saker::generate {
namespace {

using saker::testing::FakeModel;
using saker::testing::ScriptedDrafter;

// Wrong at random, at a rate that changes along the text so that long and short runs occur.
bool often_right(std::size_t place) {
  const std::uint64_t hash = (place + 1) * 0x9e3779b97f4a7c15U;
  return (hash >> 40U) % (place / 20 % 2 == 0 ? 2U : 12U) == 0;
}

// Runs requests together with a drafter that knows the plain answers.
class ScriptedRun {
 public:
  ScriptedRun(const models::Model& model, std::vector<Ids> scripts, ScriptedDrafter::IsWrong wrong)
      : model_(model) {
    drafters_[DrafterKind::kDraftModel] =
        std::make_unique<ScriptedDrafter>(std::move(scripts), std::move(wrong), log);
  }

  std::vector<Outcome> run(const std::vector<SequenceRequest>& requests, int depth, int batch) {
    std::vector<Outcome> outcomes(requests.size());
    BatchGenerator generator(
        model_, {.prefill_step = 64, .max_batch = batch}, nullptr, std::move(drafters_)
    );
    for (std::size_t i = 0; i < requests.size(); ++i) {
      SequenceRequest request = copy_of(requests[i]);
      request.speculation = {DrafterKind::kDraftModel, depth};
      generator.add(std::move(request), std::make_unique<Recorder>(outcomes[i], stop_after));
    }
    while (!generator.idle()) {
      generator.step();
    }
    return outcomes;
  }

  std::vector<Outcome> run(const SequenceRequest& request, int depth, int batch) {
    std::vector<SequenceRequest> one;
    one.push_back(copy_of(request));
    return run(one, depth, batch);
  }

  ScriptedDrafter::Log log;
  int stop_after = -1;

 private:
  const models::Model& model_;
  Drafters drafters_;
};

// The whole text, were it not for a limit, a stop token or a full context.
Ids script_of(const models::Model& model, const SequenceRequest& request) {
  SequenceRequest longer = copy_of(request);
  longer.stop_tokens.clear();
  longer.max_tokens = request.max_tokens + 20;
  return run_alone(model, std::move(longer)).end.context;
}

class Depths : public ::testing::TestWithParam<int> {};

TEST_P(Depths, GiveTheAnswersOfPlainDecodingInAnyBatch) {
  const FakeModel model;
  std::mt19937_64 random(7);
  std::vector<SequenceRequest> requests;
  std::vector<Ids> scripts;
  std::vector<Outcome> plain;
  for (int i = 0; i < 40; ++i) {
    requests.push_back(random_request(random, model.info().vocab_size));
    scripts.push_back(script_of(model, requests.back()));
    plain.push_back(run_alone(model, copy_of(requests.back())));
  }
  for (const int batch : {1, 3, 8}) {
    ScriptedRun run(model, scripts, often_right);
    const std::vector<Outcome> outcomes = run.run(requests, GetParam(), batch);
    int accepted = 0;
    for (std::size_t i = 0; i < requests.size(); ++i) {
      SCOPED_TRACE("request " + std::to_string(i));
      EXPECT_EQ(outcomes[i].ends, 1);
      expect_same(outcomes[i], plain[i]);
      accepted += outcomes[i].end.speculation.accepted;
    }
    EXPECT_GT(accepted, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Speculation,
    Depths,
    ::testing::Values(1, 2, 4, 7, 16, kAutoDepth),
    [](const auto& test) {
      return test.param == kAutoDepth ? "auto" : "depth" + std::to_string(test.param);
    }
);

// Wrong after 0, 1, 2, ... depth right tokens, and again.
ScriptedDrafter::IsWrong each_length(int depth, std::size_t first) {
  std::set<std::size_t> wrong;
  std::size_t place = first;
  for (std::size_t gap = 0; place < 5000; gap = (gap + 1) % static_cast<std::size_t>(depth + 1)) {
    place += gap;
    wrong.insert(place++);
  }
  return [wrong](std::size_t at) { return wrong.contains(at); };
}

TEST(Speculation, EveryNumberOfAcceptedTokensOccurs) {
  const FakeModel model;
  const SequenceRequest request = request_of({1, 2, 3}, 300);
  for (const int depth : {1, 2, 4, 7, 16}) {
    ScriptedRun run(model, {script_of(model, request)}, each_length(depth, 4));
    const Outcome outcome = std::move(run.run(request, depth, 1).front());
    const SpeculationCounts& counts = outcome.end.speculation;
    int rounds = 0;
    int accepted = 0;
    for (int length = 0; length <= depth; ++length) {
      EXPECT_GT(run.log.acknowledged[length], 0) << length << " of " << depth;
      rounds += run.log.acknowledged[length];
      accepted += length * run.log.acknowledged[length];
    }
    EXPECT_EQ(run.log.acknowledged.rbegin()->first, depth);
    EXPECT_EQ(counts.rounds, rounds);
    EXPECT_EQ(counts.accepted, accepted);
    EXPECT_GE(counts.drafted, counts.accepted);
  }
}

TEST(Speculation, ARoundIsOnePassWithARowForEachDraftToken) {
  const FakeModel model;
  const SequenceRequest request = request_of({1, 2, 3}, 41);
  ScriptedRun run(model, {script_of(model, request)}, [](std::size_t) { return false; });
  model.passes.clear();
  model.most_logit_rows = 0;
  const Outcome outcome = std::move(run.run(request, 7, 1).front());
  // One token with the prompt, then five rounds of eight.
  ASSERT_EQ(model.passes.size(), 6U);
  for (std::size_t i = 1; i < model.passes.size(); ++i) {
    EXPECT_EQ(model.passes[i].rows, 8);
  }
  EXPECT_EQ(model.most_logit_rows, 8);
  EXPECT_EQ(outcome.end.speculation.rounds, 5);
  EXPECT_EQ(outcome.end.speculation.accepted, 35);
}

TEST(Speculation, DraftsOfABatchShareOnePass) {
  const FakeModel model;
  std::vector<SequenceRequest> requests;
  requests.push_back(request_of({1, 2, 3}, 20));
  requests.push_back(request_of({4}, 30));
  requests.push_back(request_of({5, 6}, 25));
  std::vector<Ids> scripts;
  scripts.reserve(requests.size());
  for (const SequenceRequest& request : requests) {
    scripts.push_back(script_of(model, request));
  }
  ScriptedRun run(model, scripts, often_right);
  model.passes.clear();
  run.run(requests, 4, 8);
  int most_rows = 0;
  for (const FakeModel::Pass& pass : model.passes) {
    most_rows = std::max(most_rows, pass.rows);
  }
  EXPECT_EQ(most_rows, 15);
}

// The answer to `request`, and the same with drafts; the listener ends it after some tokens (-1:
// not).
void expect_drafts_change_nothing(
    const models::Model& model, const SequenceRequest& request, const Ids& script, int stop_after
) {
  Outcome plain;
  BatchGenerator generator(model, {});
  generator.add(copy_of(request), std::make_unique<Recorder>(plain, stop_after));
  while (!generator.idle()) {
    generator.step();
  }
  ScriptedRun run(model, {script}, often_right);
  run.stop_after = stop_after;
  expect_same(run.run(request, 7, 1).front(), plain);
}

TEST(Speculation, EndsInsideOfADraftAsPlainDecodingDoes) {
  const FakeModel model;
  const SequenceRequest base = request_of({2, 7, 1}, 30);
  const Ids script = script_of(model, base);
  for (std::size_t end = 1; end <= 30; ++end) {
    SCOPED_TRACE(end);
    SequenceRequest length = copy_of(base);
    length.max_tokens = static_cast<int>(end);
    expect_drafts_change_nothing(model, length, script, -1);
    SequenceRequest stop = copy_of(base);
    stop.stop_tokens = {script[2 + end]};
    expect_drafts_change_nothing(model, stop, script, -1);
    expect_drafts_change_nothing(model, base, script, static_cast<int>(end));
  }
}

TEST(Speculation, EndsWhereTheContextIsFull) {
  const FakeModel model({.context_length = 40});
  const SequenceRequest request = request_of({2, 7, 1}, 100);
  for (const int depth : {1, 4, 16}) {
    ScriptedRun run(model, {script_of(model, request)}, often_right);
    const Outcome outcome = std::move(run.run(request, depth, 1).front());
    expect_same(outcome, run_alone(model, copy_of(request)));
    EXPECT_EQ(outcome.end.cache->offset(), 40);
  }
}

TEST(Speculation, ADrafterThatFailsLeavesTheAnswer) {
  const FakeModel model;
  const SequenceRequest request = request_of({3, 1, 4}, 40);
  ScriptedRun run(model, {script_of(model, request)}, often_right);
  run.log.fail_at = 3;
  const Outcome outcome = std::move(run.run(request, 4, 1).front());
  expect_same(outcome, run_alone(model, copy_of(request)));
  EXPECT_EQ(outcome.end.speculation.rounds, 3);
}

TEST(Speculation, ADraftThatBreaksThePassIsDropped) {
  const FakeModel plain_model;
  const SequenceRequest request = request_of({3, 1, 4}, 12);
  const Ids script = script_of(plain_model, request);
  // A token that the answer lacks, drafted as a wrong one.
  Ids wrong = script;
  std::int32_t poison = 0;
  while (std::ranges::find(script, poison) != script.end()) {
    ++poison;
  }
  wrong[6] = poison;
  const FakeModel model({.poison = poison});
  ScriptedRun run(model, {wrong}, [](std::size_t) { return false; });
  const Outcome outcome = std::move(run.run(request, 4, 1).front());
  expect_same(outcome, run_alone(plain_model, copy_of(request)));
}

TEST(Speculation, TokensThatTheModelLacksAreNotDrafted) {
  const FakeModel model;
  const SequenceRequest request = request_of({3, 1, 4}, 12);
  Ids script = script_of(model, request);
  script[7] = model.info().vocab_size;
  ScriptedRun run(model, {script}, [](std::size_t) { return false; });
  expect_same(run.run(request, 4, 1).front(), run_alone(model, copy_of(request)));
}

TEST(Speculation, CancellingBetweenRoundsKeepsARowForEachTokenButTheLast) {
  const FakeModel model;
  const SequenceRequest request = request_of({3, 1, 4}, 100);
  ScriptedDrafter::Log log;
  Drafters drafters;
  drafters[DrafterKind::kDraftModel] = std::make_unique<ScriptedDrafter>(
      std::vector<Ids>{script_of(model, request)}, often_right, log
  );
  BatchGenerator generator(model, {}, nullptr, std::move(drafters));
  Outcome first;
  SequenceRequest drafted = copy_of(request);
  drafted.speculation = {DrafterKind::kDraftModel, 7};
  const auto id = generator.add(copy_of(drafted), std::make_unique<Recorder>(first));
  for (int i = 0; i < 6; ++i) {
    generator.step();
  }
  generator.cancel(id);
  EXPECT_EQ(first.end.reason, EndReason::kCancelled);
  ASSERT_EQ(first.end.cache->offset() + 1, static_cast<std::int64_t>(first.end.context.size()));
  SequenceRequest next = copy_of(drafted);
  next.prompt = first.end.context;
  next.max_tokens = 20;
  SequenceRequest plain = copy_of(next);
  plain.speculation = {};
  const Outcome alone = run_alone(model, std::move(plain));
  next.cache = std::move(first.end.cache);
  Outcome second;
  generator.add(std::move(next), std::make_unique<Recorder>(second));
  while (!generator.idle()) {
    generator.step();
  }
  expect_same(second, alone);
}

TEST(Speculation, RefusesWhatItCannotDo) {
  const FakeModel model;
  BatchGenerator generator(model, {});
  Outcome outcome;
  for (const Speculation wanted :
       {Speculation{DrafterKind::kPromptLookup, kMaxDraftDepth + 1},
        Speculation{DrafterKind::kPromptLookup, -2},
        Speculation{DrafterKind::kDraftModel, 4}}) {
    SequenceRequest request = request_of({1});
    request.speculation = wanted;
    EXPECT_THROW(generator.add(std::move(request), std::make_unique<Recorder>(outcome)), Error);
  }
  EXPECT_TRUE(generator.idle());
}

}  // namespace
}  // namespace saker::generate
