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

  EmbedResult embed(const EmbedRequest&) override { return {}; }

  RerankResult rerank(const RerankRequest&) override { return {}; }

  std::vector<std::int32_t> prompt_tokens(const Request&) const override { return {}; }

  const ModelFacts& facts() const override { return facts_; }

  const text::Tokenizer* tokenizer() const override { return nullptr; }

  const text::ChatTemplate* chat_template() const override { return nullptr; }

  sample::SamplingOptions recommended_sampling() const override { return {}; }

 private:
  std::atomic<int>& alive_;
  ModelFacts facts_;
};

// Somebody who asked a pool for a model.
class Asked {
 public:
  Asked(ModelPool& pool, const std::string& name) : future_(promise_->get_future()) {
    ticket_ = pool.ask(
        name,
        [promise = promise_](std::shared_ptr<LanguageModel> model, std::exception_ptr error) {
          if (error != nullptr) {
            promise->set_exception(std::move(error));
          } else {
            promise->set_value(std::move(model));
          }
        }
    );
  }

  std::uint64_t ticket() const { return ticket_; }

  bool is_answered() const {
    return future_.wait_for(std::chrono::milliseconds(20)) == std::future_status::ready;
  }

  LanguageModel* wait() {
    held_ = future_.get();
    return held_.get();
  }

  void let_go() { held_.reset(); }

 private:
  using Held = std::shared_ptr<LanguageModel>;

  std::shared_ptr<std::promise<Held>> promise_ = std::make_shared<std::promise<Held>>();
  std::future<Held> future_;
  std::uint64_t ticket_ = 0;
  Held held_;
};

class ModelPoolTest : public ::testing::Test {
 protected:
  PoolModel model(const std::string& name, std::size_t bytes) {
    return {
        .name = name,
        .load =
            [this](const std::stop_token&) {
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

  static void wait_for_state(const ModelPool& pool, const std::string& name, PoolState state) {
    for (int i = 0; i < 2000 && state_of(pool, name) != state; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    EXPECT_EQ(state_of(pool, name), state);
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

TEST_F(ModelPoolTest, WhoIsInUseLeavesWhenItMay) {
  ModelPool pool(100);
  for (const char* name : {"a", "b"}) {
    pool.add(model(name, 60));
  }
  auto held = pool.use("a");
  Asked first(pool, "b");
  wait_for_state(pool, "a", PoolState::kLeaving);
  EXPECT_EQ(state_of(pool, "b"), PoolState::kWaiting);
  EXPECT_EQ(pool.use_now("a"), nullptr) << "it takes no new user";
  Asked second(pool, "a");
  EXPECT_FALSE(first.is_answered());
  held.reset();
  EXPECT_NE(first.wait(), nullptr);
  EXPECT_FALSE(second.is_answered());
  first.let_go();
  EXPECT_NE(second.wait(), nullptr);
  EXPECT_EQ(alive_, 1);
  EXPECT_EQ(loads_, 3);
}

TEST_F(ModelPoolTest, WhoGoesAwayDoesNotMakeOthersLeave) {
  ModelPool pool(100);
  for (const char* name : {"a", "b"}) {
    pool.add(model(name, 60));
  }
  const auto held = pool.use("a");
  Asked gone(pool, "b");
  wait_for_state(pool, "a", PoolState::kLeaving);
  pool.cancel(gone.ticket());
  wait_for_state(pool, "a", PoolState::kReady);
  EXPECT_NE(pool.use_now("a"), nullptr);
  EXPECT_EQ(state_of(pool, "b"), PoolState::kUnloaded);
  EXPECT_FALSE(gone.is_answered());
  pool.cancel(12345);
}

TEST_F(ModelPoolTest, PinnedOnesStay) {
  ModelPool pool(100);
  pool.add(model("a", 60));
  pool.add(model("b", 80));
  PoolModel pinned = model("pinned", 30);
  pinned.is_pinned = true;
  pinned.keep_alive = std::chrono::milliseconds(0);
  pool.add(std::move(pinned));
  pool.use("pinned");
  pool.use("a");
  expect_error(ErrorCode::kCapacity, {"\"b\"", "pinned", "GB"}, [&] { pool.use("b"); });
  EXPECT_EQ(state_of(pool, "a"), PoolState::kReady);
  EXPECT_EQ(state_of(pool, "pinned"), PoolState::kReady);
  pool.unload("pinned");
  wait_for_state(pool, "pinned", PoolState::kUnloaded);
  pool.use("b");
  EXPECT_EQ(alive_, 1);
}

TEST_F(ModelPoolTest, UnloadsWhenNobodyUsesIt) {
  ModelPool pool(100);
  pool.add(model("a", 10));
  pool.unload("a");
  auto held = pool.use("a");
  pool.unload("a");
  EXPECT_EQ(state_of(pool, "a"), PoolState::kLeaving);
  Asked next(pool, "a");
  EXPECT_FALSE(next.is_answered());
  held.reset();
  EXPECT_NE(next.wait(), nullptr);
  EXPECT_EQ(loads_, 2);
  expect_error(ErrorCode::kNotFound, {"\"x\""}, [&] { pool.unload("x"); });
}

TEST_F(ModelPoolTest, ManyWhoAlternateAreAllServed) {
  ModelPool pool(100);
  for (const char* name : {"a", "b"}) {
    pool.add(model(name, 60));
  }
  std::atomic<int> served = 0;
  std::vector<std::jthread> clients;
  for (int i = 0; i < 20; ++i) {
    clients.emplace_back([&, i] {
      for (int round = 0; round < 10; ++round) {
        const auto held = pool.use((i + round) % 2 == 0 ? "a" : "b");
        EXPECT_EQ(alive_, 1);
        std::this_thread::sleep_for(std::chrono::microseconds(100));
        ++served;
      }
    });
  }
  clients.clear();
  EXPECT_EQ(served, 200);
  EXPECT_LT(loads_, 120) << "those who wait for a model are served together";
}

TEST_F(ModelPoolTest, KeepAliveOfAUse) {
  ModelPool pool(100);
  pool.add(model("a", 10));
  {
    auto held = pool.use("a");
    EXPECT_TRUE(pool.models()[0].expires.has_value());
    EXPECT_NE(pool.use_now("a", KeepAlive()), nullptr);
    EXPECT_FALSE(pool.models()[0].expires.has_value());
    EXPECT_NE(pool.use_now("a", std::chrono::milliseconds(0)), nullptr);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_EQ(alive_, 1);
  }
  wait_for_state(pool, "a", PoolState::kUnloaded);
  EXPECT_EQ(alive_, 0);
}

TEST_F(ModelPoolTest, AfterItsEndNobodyWaits) {
  ModelPool pool(100);
  for (const char* name : {"a", "b"}) {
    pool.add(model(name, 60));
  }
  const auto held = pool.use("a");
  Asked waiting(pool, "b");
  pool.close();
  expect_error(ErrorCode::kCancelled, {"ends"}, [&] { waiting.wait(); });
  expect_error(ErrorCode::kCancelled, {"ends"}, [&] { pool.use("b"); });
  EXPECT_EQ(alive_, 1);
}

TEST_F(ModelPoolTest, AFailedLoadIsNotRepeatedAtOnce) {
  ModelPool pool(100);
  PoolModel bad = model("bad", 10);
  bad.load = [this](const std::stop_token&) -> std::unique_ptr<LanguageModel> {
    ++loads_;
    throw Error(ErrorCode::kCorruptData, "broken weights");
  };
  pool.add(std::move(bad));
  for (int i = 0; i < 5; ++i) {
    expect_error(ErrorCode::kCorruptData, {"broken"}, [&] { pool.use("bad"); });
  }
  EXPECT_EQ(loads_, 1);
  EXPECT_EQ(pool.models()[0].error, "broken weights");
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
  slow.load = [this, gone](const std::stop_token&) -> std::unique_ptr<LanguageModel> {
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
  EXPECT_EQ(loads_, 1);
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
