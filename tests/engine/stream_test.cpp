// SPDX-License-Identifier: Apache-2.0
#include "saker/engine/stream.h"

#include "saker/base/error.h"

#include "tests/engine/fake_runner.h"
#include "tests/support/expect_error.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

namespace saker::engine {
namespace {

using ::testing::HasSubstr;

TEST(Stream, ACallbackCannotWaitForItsEngine) {
  const auto runner = make_runner();
  std::promise<std::string> said;
  Stream stream = runner->submit(request_of({1}, 4000));
  while (!stream.next(std::chrono::seconds(0))) {
  }
  std::atomic<bool> once = false;
  stream.on_ready([&] {
    if (!runner->is_own_thread() || once.exchange(true)) {
      return;
    }
    try {
      runner->prefix_stats();
      said.set_value("nothing");
    } catch (const Error& error) {
      said.set_value(error.what());
    }
  });
  std::future<std::string> what = said.get_future();
  while (what.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
    stream.next(std::chrono::milliseconds(1));
  }
  EXPECT_THAT(what.get(), HasSubstr("own thread"));
  stream.on_ready({});
}

TEST(Stream, CancelEndsWithWhatIsThere) {
  const auto runner = make_runner();
  Stream stream = runner->submit(request_of({1}, 4000));
  for (int pieces = 0; pieces < 5;) {
    const std::optional<Event> event = stream.next();
    pieces += std::holds_alternative<text::ContentPiece>(event->what) ? 1 : 0;
  }
  stream.cancel();
  stream.cancel();
  runner->cancel(987654);
  const GenerateResult result = stream.result();
  stream.cancel();
  EXPECT_EQ(result.finish_reason, FinishReason::kCancelled);
  EXPECT_GE(result.tokens.size(), 5U);
  EXPECT_LT(result.tokens.size(), 4000U);
  EXPECT_EQ(result.text, make_prompts()->tokenizer()->decode(result.tokens));
}

TEST(Stream, CancelMayComeBeforeTheFirstEvent) {
  const auto runner = make_runner();
  Stream stream = runner->submit(request_of({1}, 4000));
  stream.cancel();
  const GenerateResult result = stream.result();
  EXPECT_EQ(result.finish_reason, FinishReason::kCancelled);
}

TEST(Stream, AStreamThatIsDroppedEndsItsRequest) {
  const auto runner = make_runner();
  runner->submit(request_of({1}, 4000));
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(run(*runner, request_of({2}, 3)).tokens.size(), 3U);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));
}

TEST(Stream, TextThatNobodyReadsGrowsTogether) {
  const auto runner = make_runner();
  Stream stream = runner->submit(request_of({1}, 300));
  const GenerateResult result = stream.result();
  EXPECT_FALSE(stream.ended());
  std::string text;
  int events = 0;
  while (const std::optional<Event> event = stream.next()) {
    ++events;
    if (const auto* piece = std::get_if<text::ContentPiece>(&event->what)) {
      text += piece->text;
    }
  }
  EXPECT_EQ(text, result.text);
  EXPECT_LE(events, 3);
  EXPECT_TRUE(stream.ended());
  EXPECT_FALSE(stream.next().has_value());
}

TEST(Stream, TokensCanBeHadOneByOne) {
  const auto runner = make_runner();
  Request request = request_of({1}, 30);
  request.output.token_events = true;
  request.output.logprobs = 2;
  Stream stream = runner->submit(request);
  const GenerateResult result = stream.result();
  std::vector<TokenEvent> tokens;
  std::string bytes;
  while (std::optional<Event> event = stream.next()) {
    if (auto* token = std::get_if<TokenEvent>(&event->what)) {
      bytes += token->bytes;
      tokens.push_back(std::move(*token));
    }
  }
  ASSERT_EQ(tokens.size(), result.tokens.size());
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    EXPECT_EQ(tokens[i].id, result.tokens[i]);
    EXPECT_EQ(tokens[i].logprob, result.logprobs[i].logprob);
    EXPECT_EQ(tokens[i].top, result.logprobs[i].top);
  }
  std::string expected;
  for (const std::int32_t id : result.tokens) {
    expected += make_prompts()->tokenizer()->token_bytes(id);
  }
  EXPECT_EQ(bytes, expected);
}

TEST(Stream, ChoicesAreTheAnswersOfTheirSeeds) {
  const auto runner = make_runner();
  Request request = request_of({1, 5, 9}, 20);
  request.sampling.temperature = 1.0;
  request.sampling.seed = 40;
  request.output.n = 3;
  const std::vector<GenerateResult> choices = runner->submit(request).results();
  ASSERT_EQ(choices.size(), 3U);
  request.output.n = 1;
  for (const GenerateResult& choice : choices) {
    EXPECT_EQ(choice.tokens, run(*runner, request).tokens);
    ++request.sampling.seed;
  }
  for (const int wrong : {0, -1, kMostChoices + 1}) {
    request.output.n = wrong;
    EXPECT_EQ(code_of(*runner, request), ErrorCode::kInvalidArgument);
  }
}

TEST(Stream, TheEndSaysWhatStopped) {
  const auto runner = make_runner();
  Request request = request_of({1}, 30);
  const GenerateResult whole = run(*runner, request);
  EXPECT_EQ(whole.finish_reason, FinishReason::kLength);
  EXPECT_EQ(whole.stop_string, std::nullopt);
  EXPECT_EQ(whole.stop_token, std::nullopt);
  request.output.stop = {"never there", whole.text.substr(3, 2)};
  const GenerateResult stopped = run(*runner, request);
  EXPECT_EQ(stopped.finish_reason, FinishReason::kStop);
  EXPECT_EQ(stopped.stop_string, whole.text.substr(3, 2));
}

TEST(Stream, AFullQueueIsAnErrorAtOnce) {
  const auto prompts = make_prompts();
  FakeModelOptions options;
  options.vocab_size = prompts->tokenizer()->vocab_size();
  options.context_length = std::int64_t{1} << 30;
  Runner runner(
      [&] { return prompts; },
      {.limits = {.max_batch = 1}, .prefixes = no_prefixes(), .max_queue = 3},
      [&] { return std::make_unique<const FakeModel>(options); }
  );
  std::vector<Stream> streams;
  streams.push_back(runner.submit(request_of({1}, kNoTokenLimit)));
  streams.back().next();  // It has begun.
  for (int i = 0; i < 3; ++i) {
    streams.push_back(runner.submit(request_of({1, 2}, kNoTokenLimit)));
  }
  EXPECT_EQ(runner.queue_stats().waiting, 3);
  EXPECT_EQ(runner.queue_stats().waiting_tokens, 6);
  saker::testing::expect_error(ErrorCode::kCapacity, {"queue is full", "3 requests", " s"}, [&] {
    runner.submit(request_of({1}, 4));
  });
  streams.clear();
  while (runner.queue_stats().running + runner.queue_stats().waiting > 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(run(runner, request_of({1}, 4)).tokens.size(), 4U);
  EXPECT_EQ(runner.queue_stats().waiting_tokens, 0);
}

// Half of the answers are read to their end, the others cancelled or dropped at any moment.
TEST(Stream, ThirtyTwoThreadsSubmitAndCancel) {
  const auto runner = make_runner();
  constexpr int kThreads = 32;
  constexpr int kRequests = 12;
  std::vector<Ids> alone;
  for (int kind = 0; kind < 5; ++kind) {
    alone.push_back(run(*runner, request_of({kind, 7}, 40)).tokens);
  }
  std::atomic<int> differing = 0;
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      std::minstd_rand random(static_cast<unsigned>(thread + 1));
      for (int i = 0; i < kRequests; ++i) {
        const auto kind = static_cast<std::size_t>(random() % 5);
        Stream stream = runner->submit(request_of({static_cast<std::int32_t>(kind), 7}, 40));
        switch (random() % 4) {
          case 0:
            break;  // Dropped.
          case 1:
            stream.next(std::chrono::microseconds(random() % 2000));
            stream.cancel();
            differing += stream.result().tokens.size() > 40 ? 1 : 0;
            break;
          default:
            differing += stream.result().tokens != alone[kind] ? 1 : 0;
        }
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(differing, 0);
  while (runner->queue_stats().running + runner->queue_stats().waiting > 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace
}  // namespace saker::engine
