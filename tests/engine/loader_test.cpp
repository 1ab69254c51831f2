// SPDX-License-Identifier: Apache-2.0
// Files of requests are read beside the engine's thread.
#include "saker/base/json/json.h"
#include "saker/engine/engine.h"

#include "tests/engine/model_folder.h"
#include "tests/support/temporary_dir.h"
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <future>
#include <vector>

namespace saker::engine {
namespace {

const std::filesystem::path kGoldens = std::filesystem::path(SAKER_SOURCE_DIR) / "tests/golden";
constexpr std::size_t kPadding = 400'000;

// An adapter whose configuration takes long to read.
std::filesystem::path slow_adapter(const saker::testing::TemporaryDir& dir) {
  std::filesystem::path adapter = dir.path() / "adapter";
  std::filesystem::copy(kGoldens / "adapters/peft_llama", adapter);
  Json config = read_json_file(adapter / "adapter_config.json");
  config["padding"] = std::vector<int>(kPadding, 0);
  std::ofstream(adapter / "adapter_config.json") << config.dump();
  return adapter;
}

Request request_of_length(int max_tokens) {
  Request request;
  request.prompt.tokens = std::vector<std::int32_t>{3, 14, 15, 92};
  request.output.max_tokens = max_tokens;
  request.output.ignore_eos = true;
  return request;
}

TEST(Loader, AnswersGoOnWhileAnAdapterIsRead) {
  const ModelFolder folder("llama");
  const saker::testing::TemporaryDir dir;
  const std::filesystem::path adapter = slow_adapter(dir);
  const auto engine = folder.load({.threads = 1});
  Request tuned = request_of_length(20);
  tuned.placement.adapter = adapter;
  const Request base = request_of_length(20);
  const GenerateResult expected = folder.load({.threads = 1})->generate(tuned);
  Stream first = engine->submit(tuned);
  Stream second = engine->submit(tuned);
  Stream cancelled = engine->submit(tuned);
  cancelled.cancel();
  EXPECT_EQ(cancelled.result().finish_reason, FinishReason::kCancelled);
  EXPECT_EQ(cancelled.result().prompt_tokens, *tuned.prompt.tokens);
  EXPECT_NE(engine->generate(base).tokens, expected.tokens);
  EXPECT_FALSE(first.next(std::chrono::nanoseconds(0)));
  EXPECT_FALSE(second.next(std::chrono::nanoseconds(0)));
  expect_same(first.result(), expected);
  expect_same(second.result(), expected);
}

TEST(Loader, RowsOfFilesContinue) {
  const ModelFolder folder("llama");
  const saker::testing::TemporaryDir dir;
  const std::filesystem::path file = dir.path() / "rows.safetensors";
  Request writes = request_of_length(8);
  writes.output.cache_out = file;
  const auto engine = folder.load({.threads = 1});
  const GenerateResult before = engine->generate(writes);
  Request reads = request_of_length(8);
  reads.prompt.cache_in = file;
  const GenerateResult expected = folder.load({.threads = 1})->generate(reads);
  std::vector<Stream> streams;
  for (int i = 0; i < 4; ++i) {
    streams.push_back(engine->submit(reads));
  }
  EXPECT_EQ(engine->generate(request_of_length(8)).tokens, before.tokens);
  for (const Stream& stream : streams) {
    expect_same(stream.result(), expected);
  }
}

TEST(Loader, AnEngineMayGoWhileItReads) {
  const ModelFolder folder("llama");
  const saker::testing::TemporaryDir dir;
  Request tuned = request_of_length(20);
  tuned.placement.adapter = slow_adapter(dir);
  auto engine = folder.load({.threads = 1});
  const Stream stream = engine->submit(tuned);
  engine.reset();
  EXPECT_EQ(stream.result().finish_reason, FinishReason::kCancelled);
}

TEST(Loader, WhatCannotBeReadIsAFailureOfItsRequest) {
  const ModelFolder folder("llama");
  const auto engine = folder.load({.threads = 1});
  Request request = request_of_length(8);
  request.placement.adapter = "/nowhere/at/all";
  EXPECT_THROW(engine->generate(request), Error);
  EXPECT_THROW(engine->generate(request), Error);
  request.placement.adapter.clear();
  request.prompt.cache_in = "/nowhere/at/all";
  EXPECT_THROW(engine->generate(request), Error);
  EXPECT_EQ(engine->generate(request_of_length(8)).tokens.size(), 8U);
}

// Scores and vectors read their adapters on the caller's thread.
TEST(Loader, AnswersGoOnWhileAnAdapterIsReadForScores) {
  const ModelFolder folder("llama");
  const saker::testing::TemporaryDir dir;
  const auto engine = folder.load({.threads = 1});
  const ScoreRequest request{
      .tokens = std::vector<std::int32_t>{3, 14, 15},
      .views = {{.key = "ft", .adapter = slow_adapter(dir)}}
  };
  auto scores = std::async(std::launch::async, [&] { return engine->score(request); });
  EXPECT_EQ(engine->generate(request_of_length(20)).tokens.size(), 20U);
  EXPECT_EQ(scores.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  EXPECT_EQ(scores.get().tokens.size(), 3U);
}

}  // namespace
}  // namespace saker::engine
