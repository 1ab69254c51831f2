// SPDX-License-Identifier: Apache-2.0
#include "saker/engine/runner.h"

#include "saker/base/error.h"

#include "tests/engine/fake_runner.h"
#include "tests/support/expect_error.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <latch>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

namespace saker::engine {
namespace {

TEST(Runner, TextIsTheTokensDecoded) {
  const auto runner = make_runner();
  const GenerateResult result = run(*runner, request_of({5, 6, 7}, 40));
  EXPECT_EQ(result.prompt_tokens, (Ids{5, 6, 7}));
  EXPECT_EQ(result.tokens.size(), 40U);
  EXPECT_EQ(result.text, make_prompts()->tokenizer()->decode(result.tokens));
  EXPECT_EQ(result.finish_reason, FinishReason::kLength);
  EXPECT_TRUE(result.logprobs.empty());
}

TEST(Runner, StatsCountWhatRan) {
  const auto runner = make_runner();
  const GenerateStats stats = run(*runner, request_of({5, 6, 7}, 12)).stats;
  EXPECT_EQ(stats.prompt_tokens, 3);
  EXPECT_EQ(stats.cached_tokens, 0);
  EXPECT_EQ(stats.generation_tokens, 12);
  EXPECT_GT(stats.prompt_tps, 0.0);
  EXPECT_GT(stats.generation_tps, 0.0);
  EXPECT_GT(stats.time_to_first_token_s, 0.0);
  EXPECT_GT(stats.peak_memory_bytes, 1U << 20U);
}

TEST(Runner, LogprobsOnePerToken) {
  const auto runner = make_runner();
  Request request = request_of({5}, 7);
  request.output.logprobs = 2;
  const GenerateResult result = run(*runner, request);
  ASSERT_EQ(result.logprobs.size(), 7U);
  for (std::size_t i = 0; i < 7; ++i) {
    EXPECT_EQ(result.logprobs[i].token, result.tokens[i]);
    ASSERT_EQ(result.logprobs[i].top.size(), 2U);
    EXPECT_EQ(result.logprobs[i].top[0].first, result.tokens[i]);
    EXPECT_EQ(result.logprobs[i].top[0].second, result.logprobs[i].logprob);
  }
}

TEST(Runner, EosStopsUnlessIgnored) {
  const GenerateResult whole = run(*make_runner(), request_of({9}, 10));
  const auto runner = make_runner({}, {whole.tokens[4]});
  const GenerateResult stopped = run(*runner, request_of({9}, 10));
  EXPECT_EQ(stopped.tokens, Ids(whole.tokens.begin(), whole.tokens.begin() + 4));
  EXPECT_EQ(stopped.finish_reason, FinishReason::kStop);
  EXPECT_EQ(stopped.text, make_prompts()->tokenizer()->decode(stopped.tokens));
  Request request = request_of({9}, 10);
  request.output.ignore_eos = true;
  EXPECT_EQ(run(*runner, request).tokens, whole.tokens);
}

// Any piece of the text as a stop string cuts the text before its first occurrence, wherever the
// borders of tokens are.
TEST(Runner, StopStringsMatchAcrossTokenBorders) {
  const auto runner = make_runner({.spread = 30.0F});
  int stopped = 0;
  for (std::int32_t start = 3; start < 30; ++start) {
    const GenerateResult whole = run(*runner, request_of({start}, 30));
    for (std::size_t at = 0; at + 4 <= whole.text.size(); at += 3) {
      const std::string stop = whole.text.substr(at, 4);
      // Only whole characters make a stop string.
      const auto is_tail = [](char c) { return (static_cast<unsigned char>(c) & 0xc0U) == 0x80U; };
      const bool cut =
          is_tail(stop.front()) || (at + 4 < whole.text.size() && is_tail(whole.text[at + 4]));
      if (cut) {
        continue;
      }
      Request request = request_of({start}, 30);
      request.output.stop = {"never met", stop};
      const GenerateResult result = run(*runner, request);
      EXPECT_EQ(result.text, whole.text.substr(0, whole.text.find(stop)));
      EXPECT_EQ(result.finish_reason, FinishReason::kStop);
      ++stopped;
    }
  }
  EXPECT_GT(stopped, 100);
}

TEST(Runner, HeldBackTextComesAtTheEnd) {
  const auto runner = make_runner();
  const GenerateResult whole = run(*runner, request_of({4}, 12));
  Request request = request_of({4}, 12);
  // The text ends in the beginning of this stop string.
  request.output.stop = {std::string(1, whole.text.back()) + "\x7f never"};
  if ((static_cast<unsigned char>(whole.text.back()) & 0x80U) != 0) {
    request.output.stop = {"\x7f"};
  }
  const GenerateResult result = run(*runner, request);
  EXPECT_EQ(result.text, whole.text);
  EXPECT_EQ(result.finish_reason, FinishReason::kLength);
}

TEST(Runner, ManyRequestsEqualTheirSingleRuns) {
  const auto runner = make_runner();
  std::vector<Request> requests;
  for (int i = 0; i < 100; ++i) {
    Request request = request_of(Ids(static_cast<std::size_t>(1 + i * 7 % 60), i), 1 + i % 37);
    request.sampling.temperature = i % 3 * 0.5;
    request.sampling.seed = static_cast<std::uint64_t>(i);
    request.sampling.top_k = i % 2 * 10;
    request.output.logprobs = i % 4 - 1;
    requests.push_back(std::move(request));
  }
  std::vector<std::unique_ptr<Running>> together;
  together.reserve(requests.size());
  for (const Request& request : requests) {
    together.push_back(std::make_unique<Running>(*runner, request));
  }
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const GenerateResult batched = together[i]->wait();
    const GenerateResult single = run(*runner, requests[i]);
    EXPECT_EQ(batched.tokens, single.tokens);
    EXPECT_EQ(batched.text, single.text);
    ASSERT_EQ(batched.logprobs.size(), single.logprobs.size());
    for (std::size_t t = 0; t < single.logprobs.size(); ++t) {
      EXPECT_EQ(batched.logprobs[t].logprob, single.logprobs[t].logprob);
      EXPECT_EQ(batched.logprobs[t].top, single.logprobs[t].top);
    }
  }
}

TEST(Runner, SessionsRunOnlyWhatIsNew) {
  const auto runner = make_runner();
  const std::uint64_t session = runner->open_session();
  Request first = request_of(Ids(30, 8), 10);
  first.prompt.session = session;
  const GenerateResult answer = run(*runner, first);
  Ids conversation = answer.prompt_tokens;
  conversation.insert(conversation.end(), answer.tokens.begin(), answer.tokens.end());
  conversation.insert(conversation.end(), {11, 12, 13});
  Request second = request_of(conversation, 10);
  const GenerateResult alone = run(*runner, second);
  second.prompt.session = session;
  const GenerateResult continued = run(*runner, second);
  EXPECT_EQ(continued.stats.cached_tokens, 39);
  EXPECT_EQ(alone.stats.cached_tokens, 0);
  EXPECT_EQ(continued.tokens, alone.tokens);
  // Going back: the same question again, then another one.
  EXPECT_EQ(run(*runner, second).tokens, alone.tokens);
  Request other = request_of({8, 8, 8, 1}, 5);
  const GenerateResult other_alone = run(*runner, other);
  other.prompt.session = session;
  const GenerateResult shortened = run(*runner, other);
  EXPECT_EQ(shortened.stats.cached_tokens, 3);
  EXPECT_EQ(shortened.tokens, other_alone.tokens);
  runner->close_session(session);
  EXPECT_EQ(code_of(*runner, other), ErrorCode::kInvalidArgument);
}

TEST(Runner, AFailedRequestLeavesItsSessionUsable) {
  const auto runner = make_runner({.poison = 13});
  Request request = request_of({1, 2, 13});
  request.prompt.session = runner->open_session();
  EXPECT_EQ(code_of(*runner, request), ErrorCode::kCapacity);
  request.output.max_tokens = 0;
  EXPECT_EQ(code_of(*runner, request), ErrorCode::kInvalidArgument);
  request = request_of({1, 2, 3});
  const GenerateResult alone = run(*runner, request);
  request.prompt.session = 2;
  EXPECT_EQ(code_of(*runner, request), ErrorCode::kInvalidArgument);
  request.prompt.session = 1;
  EXPECT_EQ(run(*runner, request).tokens, alone.tokens);
}

TEST(Runner, ARefusedRequestLeavesItsSessionsRows) {
  const auto runner = make_runner();
  Request request = request_of({1, 2, 3, 4}, 5);
  request.prompt.session = runner->open_session();
  run(*runner, request);
  request.sampling.top_p = 5.0;
  EXPECT_EQ(code_of(*runner, request), ErrorCode::kInvalidArgument);
  request.sampling = {};
  EXPECT_EQ(run(*runner, request).stats.cached_tokens, 3);
}

TEST(Runner, LogprobsAreNoneOrACount) {
  const auto runner = make_runner();
  Request request = request_of({1, 2}, 2);
  request.output.logprobs = -2;
  EXPECT_EQ(code_of(*runner, request), ErrorCode::kInvalidArgument);
  request.output.logprobs = -1;
  EXPECT_TRUE(run(*runner, request).logprobs.empty());
}

TEST(Runner, GoingAwayCancelsWhatRuns) {
  auto runner = make_runner();
  constexpr int kCount = 12;
  std::vector<std::unique_ptr<Running>> running;
  running.reserve(kCount);
  for (int i = 0; i < kCount; ++i) {
    running.push_back(std::make_unique<Running>(*runner, request_of({i}, 4000)));
  }
  runner.reset();
  for (const auto& one : running) {
    EXPECT_EQ(one->wait().finish_reason, FinishReason::kCancelled);
  }
}

TEST(Runner, BadRequestsEndAloneWithTheirError) {
  const auto runner = make_runner({.context_length = 50});
  Running good(*runner, request_of({1}, 30));
  EXPECT_EQ(code_of(*runner, request_of({})), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of(*runner, request_of(Ids(51, 1))), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of(*runner, Request{}), ErrorCode::kInvalidArgument);
  Request request = request_of({1});
  request.sampling.temperature = -1.0;
  EXPECT_EQ(code_of(*runner, request), ErrorCode::kInvalidArgument);
  request = request_of({1});
  request.output.stop = {""};
  EXPECT_EQ(code_of(*runner, request), ErrorCode::kInvalidArgument);
  request = request_of({1});
  request.prompt.session = 77;
  EXPECT_EQ(code_of(*runner, request), ErrorCode::kInvalidArgument);
  EXPECT_EQ(good.wait().tokens.size(), 30U);
}

TEST(Runner, ErrorsAreTyped) {
  const auto runner = make_runner();
  const auto code = [&](auto job) {
    try {
      runner->call([&](const models::Model&) -> int {
        job();
        return 0;
      });
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::kNotFound;
  };
  EXPECT_EQ(code([] { throw std::bad_alloc(); }), ErrorCode::kCapacity);
  EXPECT_EQ(code([] { throw std::runtime_error("std::bad_alloc"); }), ErrorCode::kCapacity);
  EXPECT_EQ(code([] { throw std::runtime_error("x"); }), ErrorCode::kInternal);
  EXPECT_EQ(code([] { throw Error(ErrorCode::kUnsupported, "x"); }), ErrorCode::kUnsupported);
  EXPECT_EQ(runner->call([](const models::Model& model) { return model.info().layer_count; }), 1);
}

TEST(Runner, LoadingFailsOnTheCallersThread) {
  const Runner::LoadModel broken = []() -> std::unique_ptr<const models::Model> {
    throw Error(ErrorCode::kCorruptData, "a broken file");
  };
  saker::testing::expect_error(ErrorCode::kCorruptData, {"a broken file"}, [&] {
    const Runner runner([] { return make_prompts(); }, {}, broken);
  });
  const Runner::LoadModel fake = [] { return std::make_unique<const FakeModel>(); };
  saker::testing::expect_error(ErrorCode::kInvalidArgument, {"prefill_step"}, [&] {
    const Runner runner([] { return make_prompts(); }, {.limits = {.prefill_step = 0}}, fake);
  });
}

TEST(Runner, TextsAreLoadedBesideTheModel) {
  const Runner::LoadPrompts broken = []() -> std::shared_ptr<const Prompts> {
    throw Error(ErrorCode::kUnsupported, "broken texts");
  };
  const Runner::LoadModel fake = [] { return std::make_unique<const FakeModel>(); };
  saker::testing::expect_error(ErrorCode::kUnsupported, {"broken texts"}, [&] {
    const Runner runner(broken, {}, fake);
  });
  const Runner::LoadModel also_broken = []() -> std::unique_ptr<const models::Model> {
    throw Error(ErrorCode::kCorruptData, "a broken file");
  };
  saker::testing::expect_error(ErrorCode::kUnsupported, {"broken texts"}, [&] {
    const Runner runner(broken, {}, also_broken);
  });
  // Each waits until the other runs.
  std::latch both(2);
  const Runner runner(
      [&] {
        both.arrive_and_wait();
        return make_prompts();
      },
      {},
      [&] {
        both.arrive_and_wait();
        return std::make_unique<const FakeModel>();
      }
  );
  EXPECT_EQ(runner.context_length(), FakeModel().info().context_length);
}

}  // namespace
}  // namespace saker::engine
