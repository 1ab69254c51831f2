// SPDX-License-Identifier: Apache-2.0
#include "saker/engine/pool/model_pool.h"

#include "saker/base/error.h"

#include "tests/engine/model_folder.h"
#include "tests/support/expect_error.h"
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace saker::engine {
namespace {

using testing::expect_error;

// A model that counts how many of its kind live.
class CountedModel : public LanguageModel {
 public:
  explicit CountedModel(std::atomic<int>& alive) : alive_(alive) { ++alive_; }

  ~CountedModel() override { --alive_; }

  Stream submit(Request) override { throw Error(ErrorCode::kUnsupported, "no answers"); }

  std::vector<ScoreOutcome> score(std::span<const ScoreRequest>) override { return {}; }

  std::vector<std::int32_t> prompt_tokens(const Request&) const override { return {}; }

  const ModelFacts& facts() const override { return facts_; }

  const text::Tokenizer* tokenizer() const override { return nullptr; }

  const text::ChatTemplate* chat_template() const override { return nullptr; }

  sample::SamplingOptions recommended_sampling() const override { return {}; }

 private:
  std::atomic<int>& alive_;
  ModelFacts facts_;
};

class ModelPoolTest : public ::testing::Test {
 protected:
  PoolModel model(const std::string& name, std::size_t bytes) {
    return {
        .name = name,
        .load =
            [this] {
              ++loads_;
              return std::make_unique<CountedModel>(alive_);
            },
        .bytes = bytes,
    };
  }

  static PoolState state_of(const ModelPool& pool, const std::string& name) {
    for (const PoolEntry& entry : pool.models()) {
      if (entry.name == name) {
        return entry.state;
      }
    }
    ADD_FAILURE() << name;
    return PoolState::kUnloaded;
  }

  std::atomic<int> alive_ = 0;
  std::atomic<int> loads_ = 0;
};

TEST_F(ModelPoolTest, LoadsOnDemandByNameOrAlias) {
  ModelPool pool(100);
  PoolModel first = model("first", 10);
  first.aliases = {"one", "1"};
  pool.add(std::move(first));
  EXPECT_EQ(state_of(pool, "first"), PoolState::kUnloaded);
  EXPECT_EQ(pool.find("one"), "first");
  EXPECT_EQ(pool.find("two"), std::nullopt);
  const auto held = pool.use("1");
  EXPECT_EQ(pool.use("first"), held);
  EXPECT_EQ(loads_, 1);
  EXPECT_EQ(state_of(pool, "first"), PoolState::kReady);
  expect_error(ErrorCode::kNotFound, {"\"two\"", "first"}, [&] { pool.use("two"); });
  expect_error(ErrorCode::kInvalidArgument, {"\"one\""}, [&] { pool.add(model("one", 1)); });
}

TEST_F(ModelPoolTest, TheLeastRecentlyUsedMakesRoom) {
  ModelPool pool(100);
  for (const char* name : {"a", "b", "c"}) {
    pool.add(model(name, 45));
  }
  pool.use("a");
  pool.use("b");
  pool.use("a");
  pool.use("c");
  EXPECT_EQ(state_of(pool, "a"), PoolState::kReady);
  EXPECT_EQ(state_of(pool, "b"), PoolState::kUnloaded);
  EXPECT_EQ(alive_, 2);
}

TEST_F(ModelPoolTest, NoneInUseLeaves) {
  ModelPool pool(100);
  for (const char* name : {"a", "b"}) {
    pool.add(model(name, 60));
  }
  PoolModel pinned = model("pinned", 30);
  pinned.is_pinned = true;
  pool.add(std::move(pinned));
  pool.use("pinned");
  auto held = pool.use("a");
  expect_error(ErrorCode::kCapacity, {"\"b\"", "in use", "a", "pinned"}, [&] { pool.use("b"); });
  expect_error(ErrorCode::kInvalidArgument, {"\"a\"", "in use"}, [&] { pool.unload("a"); });
  held.reset();
  pool.use("b");
  EXPECT_EQ(state_of(pool, "a"), PoolState::kUnloaded);
  EXPECT_EQ(state_of(pool, "pinned"), PoolState::kReady);
  pool.unload("b");
  pool.unload("b");
  EXPECT_EQ(alive_, 1);
}

TEST_F(ModelPoolTest, WhatIsTooLargeSaysSo) {
  ModelPool pool(100);
  pool.add(model("a", 60));
  pool.add(model("huge", 101));
  pool.use("a");
  expect_error(ErrorCode::kCapacity, {"\"huge\"", "GB"}, [&] { pool.use("huge"); });
  EXPECT_EQ(state_of(pool, "a"), PoolState::kReady);
}

TEST_F(ModelPoolTest, AllWaitForOneLoad) {
  ModelPool pool(100);
  std::promise<void> go;
  std::shared_future<void> gone = go.get_future().share();
  PoolModel slow = model("slow", 10);
  slow.load = [this, gone]() -> std::unique_ptr<LanguageModel> {
    ++loads_;
    gone.wait();
    throw Error(ErrorCode::kCorruptData, "broken weights");
  };
  pool.add(std::move(slow));
  std::vector<std::future<ErrorCode>> waiting;
  for (int i = 0; i < 8; ++i) {
    waiting.push_back(std::async(std::launch::async, [&] {
      try {
        pool.use("slow");
      } catch (const Error& error) {
        return error.code();
      }
      return ErrorCode::kInternal;
    }));
  }
  while (loads_ == 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(state_of(pool, "slow"), PoolState::kLoading);
  go.set_value();
  for (auto& each : waiting) {
    EXPECT_EQ(each.get(), ErrorCode::kCorruptData);
  }
  // Those that came after its end, if any, began one of their own.
  EXPECT_LE(loads_, 2);
  EXPECT_EQ(state_of(pool, "slow"), PoolState::kUnloaded);
}

TEST_F(ModelPoolTest, WhatNobodyUsesLeavesAfterAWhile) {
  ModelPool pool(100);
  PoolModel brief = model("brief", 10);
  brief.keep_alive = std::chrono::milliseconds(20);
  pool.add(std::move(brief));
  auto held = pool.use("brief");
  std::this_thread::sleep_for(std::chrono::milliseconds(60));
  EXPECT_EQ(alive_, 1);
  held.reset();
  for (int i = 0; i < 1000 && alive_ > 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_EQ(alive_, 0);
}

TEST_F(ModelPoolTest, HoldersOutliveThePool) {
  std::shared_ptr<LanguageModel> held;
  {
    ModelPool pool(100);
    pool.add(model("a", 10));
    held = pool.use("a");
  }
  EXPECT_EQ(alive_, 1);
  held.reset();
  EXPECT_EQ(alive_, 0);
}

TEST_F(ModelPoolTest, EnginesAnswerFromIt) {
  const ModelFolder folder("qwen3");
  const EngineOptions options{.threads = 1, .prefix_cache = 1000};
  const std::filesystem::path path = folder.load(options)->facts().path;
  EXPECT_GT(memory_needed(path, options), 1000U);
  ModelPool pool(std::size_t{1} << 30);
  pool.add({.name = "tiny", .load = engine_loader(path, options)});
  Request request;
  request.prompt.tokens = std::vector<std::int32_t>{1, 2, 3};
  request.output.max_tokens = 4;
  EXPECT_EQ(pool.use("tiny")->submit(request).result().tokens.size(), 4U);
}

}  // namespace
}  // namespace saker::engine
