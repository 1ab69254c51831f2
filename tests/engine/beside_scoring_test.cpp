// SPDX-License-Identifier: Apache-2.0
// Answers go on while texts are scored, and neither changes the other.
#include "saker/engine/engine.h"

#include "tests/engine/model_folder.h"
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <span>
#include <variant>
#include <vector>

namespace saker::engine {
namespace {

std::vector<ScoreRequest> texts_to_score(int count) {
  std::vector<ScoreRequest> requests;
  for (int i = 0; i < count; ++i) {
    ScoreRequest& request = requests.emplace_back();
    request.tokens.emplace();
    for (int t = 0; t < 400; ++t) {
      request.tokens->push_back((t * 31 + i * 17 + t * t % 7) % 96);
    }
  }
  return requests;
}

std::vector<double> sums_of(const std::vector<ScoreOutcome>& outcomes) {
  std::vector<double> sums;
  for (const ScoreOutcome& outcome : outcomes) {
    sums.push_back(std::get<ScoreResult>(outcome).views.front().sum);
  }
  return sums;
}

TEST(BesideScoring, AnswersGoOnAndNothingChanges) {
  const ModelFolder folder("qwen3");
  const auto engine = folder.load({.threads = 1, .prefill_step = 16});
  const std::vector<ScoreRequest> texts = texts_to_score(60);
  const std::vector<double> alone = sums_of(engine->score(texts));
  Request request;
  request.prompt.tokens = std::vector<std::int32_t>{3, 14, 15, 92};
  request.output.max_tokens = 300;
  request.output.ignore_eos = true;
  const GenerateResult answer = engine->generate(request);

  auto scores = std::async(std::launch::async, [&] { return engine->score(texts); });
  // The scores take many times longer than one answer.
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(engine->generate(request).tokens, answer.tokens);
  }
  EXPECT_NE(scores.wait_for(std::chrono::seconds(0)), std::future_status::ready);
  EXPECT_EQ(sums_of(scores.get()), alone);
}

TEST(BesideScoring, CancelIsHeard) {
  const ModelFolder folder("qwen3");
  const auto engine = folder.load({.threads = 1, .prefill_step = 16});
  const std::vector<ScoreRequest> texts = texts_to_score(60);
  auto scores = std::async(std::launch::async, [&] { return engine->score(texts); });
  Request request;
  request.prompt.tokens = std::vector<std::int32_t>{3, 14, 15, 92};
  request.output.max_tokens = 500;
  request.output.ignore_eos = true;
  Stream stream = engine->submit(request);
  stream.next();
  stream.cancel();
  EXPECT_EQ(stream.result().finish_reason, FinishReason::kCancelled);
  EXPECT_NE(scores.wait_for(std::chrono::seconds(0)), std::future_status::ready);
  scores.get();
}

}  // namespace
}  // namespace saker::engine
