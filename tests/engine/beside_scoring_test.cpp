// SPDX-License-Identifier: Apache-2.0
// Answers go on while texts are scored, and neither changes the other.
#include "saker/engine/engine.h"

#include "tests/engine/model_folder.h"
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <span>
#include <stop_token>
#include <thread>
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

TEST(BesideScoring, ACallThatIsAskedToStopEndsAfterTwoPasses) {
  const ModelFolder folder("qwen3");
  const auto engine = folder.load({.threads = 1, .prefill_step = 16});
  std::vector<ScoreRequest> texts = texts_to_score(20);
  std::stop_source stop;
  std::atomic<int> rows_after = 0;
  for (ScoreRequest& text : texts) {
    text.take_logits = [&](std::size_t, std::size_t, std::span<const float>) {
      rows_after += stop.stop_requested() ? 1 : 0;
      stop.request_stop();
    };
    text.stop = stop.get_token();
  }
  for (const ScoreOutcome& outcome : engine->score(texts)) {
    ASSERT_TRUE(std::holds_alternative<Error>(outcome));
    EXPECT_EQ(std::get<Error>(outcome).code(), ErrorCode::kCancelled);
  }
  EXPECT_LE(rows_after, 2 * 16);
}

TEST(BesideScoring, VectorsAreCancelledToo) {
  const ModelFolder folder("qwen3");
  const auto engine = folder.load({.threads = 1, .prefill_step = 16});
  EmbedRequest request;
  for (const ScoreRequest& text : texts_to_score(100)) {
    request.inputs.emplace_back(*text.tokens);
  }
  std::stop_source stop;
  request.stop = stop.get_token();
  auto vectors = std::async(std::launch::async, [&] { return engine->embed(request); });
  while (engine->busy_seconds() == 0.0) {
    std::this_thread::yield();
  }
  stop.request_stop();
  try {
    vectors.get();
    FAIL() << "it was not cancelled";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCancelled);
  }
}

}  // namespace
}  // namespace saker::engine
