// SPDX-License-Identifier: Apache-2.0
// Engines whose cached rows have little memory.
#include "saker/base/error.h"
#include "saker/engine/engine.h"

#include "tests/engine/model_folder.h"
#include "tests/support/expect_error.h"
#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

namespace saker::engine {
namespace {

Request long_request(int prompt, int answer) {
  Request request;
  request.prompt.tokens.emplace();
  for (int i = 0; i < prompt; ++i) {
    request.prompt.tokens->push_back(i * 31 % 96);
  }
  request.output.max_tokens = answer;
  request.output.ignore_eos = true;
  return request;
}

// Memory that a request holds alone.
std::size_t memory_of(const ModelFolder& folder, const Request& request) {
  const auto engine = folder.load({.threads = 1, .prefix_cache = 0});
  const std::uint64_t session = engine->open_session();
  Request kept = request;
  kept.prompt.session = session;
  engine->generate(kept);
  return engine->queue_stats().cache_bytes;
}

TEST(CacheMemory, AnswersInLittleMemoryHaveTheSameBits) {
  const ModelFolder folder("qwen3");
  std::vector<Request> requests;
  for (int i = 0; i < 24; ++i) {
    requests.push_back(long_request(40 + 5 * i, 90));
    requests.back().placement.priority = i % 3;
    requests.back().sampling.temperature = i % 2 * 0.7;
  }
  const auto expected = run_together(*folder.load({.threads = 2}), requests);
  const std::size_t memory = 2 * memory_of(folder, requests.back());
  const auto engine = folder.load({.threads = 2, .cache_memory = memory});
  const auto results = run_together(*engine, requests);
  for (std::size_t i = 0; i < results.size(); ++i) {
    SCOPED_TRACE("request " + std::to_string(i));
    expect_same(results[i], expected[i]);
  }
  const QueueStats stats = engine->queue_stats();
  EXPECT_GT(stats.preemptions, 0);
  EXPECT_GT(stats.cache_bytes, 0U);
  EXPECT_LE(stats.cache_bytes, memory);
  EXPECT_EQ(stats.cache_memory, memory);
}

TEST(CacheMemory, WhatCannotFitIsRefused) {
  const ModelFolder folder("qwen3");
  const std::size_t memory = memory_of(folder, long_request(100, 20));
  const auto engine = folder.load({.threads = 1, .cache_memory = memory});
  saker::testing::expect_error(
      ErrorCode::kInvalidArgument,
      {"cache_memory", std::to_string(memory), "419 tokens"},
      [&] { engine->generate(long_request(400, 20)); }
  );
  EXPECT_EQ(engine->generate(long_request(100, 20)).tokens.size(), 20U);
}

// Sessions that nobody uses give their rows up.
TEST(CacheMemory, SessionsGiveWay) {
  const ModelFolder folder("qwen3");
  const std::size_t memory = 2 * memory_of(folder, long_request(100, 20));
  const auto engine = folder.load({.threads = 1, .prefix_cache = 0, .cache_memory = memory});
  std::vector<std::uint64_t> sessions;
  std::vector<GenerateResult> answers;
  for (int i = 0; i < 5; ++i) {
    sessions.push_back(engine->open_session());
    Request request = long_request(100, 20);
    request.prompt.session = sessions.back();
    EXPECT_EQ(engine->generate(request).finish_reason, FinishReason::kLength);
    EXPECT_LE(engine->queue_stats().cache_bytes, memory);
  }
  Request again = long_request(100, 20);
  again.prompt.session = sessions.front();
  EXPECT_EQ(engine->generate(again).stats.cached_tokens, 0);
  again.prompt.session = sessions.back();
  EXPECT_EQ(engine->generate(again).stats.cached_tokens, 99);
}

}  // namespace
}  // namespace saker::engine
