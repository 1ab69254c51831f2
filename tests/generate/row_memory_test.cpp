// SPDX-License-Identifier: Apache-2.0
// Cached rows under a budget of memory, and sequences that give their rows up for others.
#include "saker/base/error.h"
#include "saker/cache/prefix_cache.h"
#include "saker/generate/batch_generator.h"
#include "saker/load/checkpoint.h"

#include "tests/generate/runs.h"
#include "tests/support/expect_error.h"
#include "tests/support/fake_model.h"
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace saker::generate {
namespace {

using saker::testing::FakeModel;

// Bytes of the fake model's rows.
constexpr std::size_t kRowBytes = 4;

// Does not keep the rows of what has ended, whose memory others need.
class Forgetting final : public Recorder {
 public:
  explicit Forgetting(Outcome& outcome) : Recorder(outcome) {}

  void on_end(SequenceEnd end) noexcept override {
    end.cache.reset();
    Recorder::on_end(std::move(end));
  }
};

void expect_as_alone(
    const models::Model& model, const Outcome& outcome, const SequenceRequest& request
) {
  EXPECT_EQ(outcome.ends, 1);
  Outcome alone = run_alone(model, copy_of(request));
  alone.end.cache.reset();
  expect_same(outcome, alone);
}

void run_all(BatchGenerator& generator) {
  while (!generator.idle()) {
    generator.step();
  }
}

std::size_t peak(const BatchGenerator& generator) {
  return generator.memory().account()->peak();
}

TEST(RowMemory, ARequestThatCannotFitIsRefusedWithBothNumbers) {
  const FakeModel model;
  BatchGenerator generator(model, {.memory = {.budget = 100 * kRowBytes}});
  Outcome outcome;
  const auto add = [&](int prompt, int answer) {
    generator.add(
        request_of(Ids(static_cast<std::size_t>(prompt), 1), answer),
        std::make_unique<Recorder>(outcome)
    );
  };
  saker::testing::expect_error(
      ErrorCode::kInvalidArgument,
      {"cache_memory", "101 tokens", "404 bytes", "400 bytes"},
      [&] { add(90, 12); }
  );
  EXPECT_TRUE(generator.idle());
  EXPECT_EQ(outcome.ends, 0);
  add(90, 11);  // The last token needs no row.
  run_all(generator);
  EXPECT_EQ(outcome.end.reason, EndReason::kLength);
  EXPECT_EQ(outcome.tokens.size(), 11U);
  EXPECT_EQ(peak(generator), 100 * kRowBytes);
}

TEST(RowMemory, AnAnswerWithoutALimitEndsWhereMemoryDoes) {
  const FakeModel model;
  BatchGenerator generator(model, {.memory = {.budget = 100 * kRowBytes}});
  Outcome outcome;
  generator.add(
      request_of(Ids(40, 1), std::numeric_limits<int>::max()), std::make_unique<Recorder>(outcome)
  );
  run_all(generator);
  EXPECT_EQ(outcome.end.reason, EndReason::kLength);
  EXPECT_EQ(outcome.tokens.size(), 61U);
  EXPECT_LE(peak(generator), 100 * kRowBytes);
}

TEST(RowMemory, RandomRequestsInLittleMemoryEqualTheirSingleRuns) {
  const FakeModel model;
  std::mt19937_64 random(52);
  std::vector<SequenceRequest> requests;
  for (int i = 0; i < 300; ++i) {
    requests.push_back(random_request(random, model.info().vocab_size));
    requests.back().priority = static_cast<int>(random() % 3);
  }
  for (const int rows : {340, 500, 900}) {
    const std::size_t budget = static_cast<std::size_t>(rows) * kRowBytes;
    std::vector<Outcome> together(requests.size());
    BatchGenerator generator(
        model, {.prefill_step = 64, .max_batch = 8, .memory = {.budget = budget}}
    );
    for (std::size_t i = 0; i < requests.size(); ++i) {
      SequenceRequest request = copy_of(requests[i]);
      request.priority = requests[i].priority;
      generator.add(std::move(request), std::make_unique<Forgetting>(together[i]));
      generator.step();
    }
    run_all(generator);
    EXPECT_GT(generator.preemptions(), 0);
    EXPECT_LE(peak(generator), budget);
    EXPECT_EQ(generator.memory().account()->bytes(), 0U);
    fmt::print(
        "{} rows: most in memory {}, {} preemptions\n",
        rows,
        peak(generator) / kRowBytes,
        generator.preemptions()
    );
    for (std::size_t i = 0; i < requests.size(); ++i) {
      SCOPED_TRACE("request " + std::to_string(i));
      expect_as_alone(model, together[i], requests[i]);
    }
  }
}

TEST(RowMemory, AHigherPriorityTakesAPlaceAtOnce) {
  const FakeModel model;
  std::vector<Outcome> outcomes(3);
  BatchGenerator generator(model, {.max_batch = 2});
  const auto add = [&](std::size_t index, int priority) {
    SequenceRequest request = request_of(Ids(5, static_cast<std::int32_t>(index)), 10);
    request.priority = priority;
    generator.add(std::move(request), std::make_unique<Recorder>(outcomes[index]));
  };
  add(0, 0);
  add(1, 0);
  generator.step();
  generator.step();
  add(2, 1);
  generator.step();
  EXPECT_EQ(outcomes[0].tokens.size(), 3U);
  EXPECT_EQ(outcomes[1].tokens.size(), 2U);
  EXPECT_EQ(outcomes[2].tokens.size(), 1U);
  run_all(generator);
  EXPECT_EQ(outcomes[1].end.preemptions, 1);
  EXPECT_EQ(outcomes[1].progress, (std::vector<int>{5}));
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    expect_same(
        outcomes[i], run_alone(model, request_of(Ids(5, static_cast<std::int32_t>(i)), 10))
    );
  }
}

TEST(RowMemory, WhatWaitsCanBeCancelled) {
  const FakeModel model;
  Outcome outcome;
  BatchGenerator generator(model, {.max_batch = 2});
  const auto id = generator.add(request_of({1, 2, 3}, 10), std::make_unique<Recorder>(outcome));
  generator.step();
  generator.preempt(id);
  generator.preempt(id);
  generator.preempt(77);
  generator.cancel(id);
  EXPECT_TRUE(generator.idle());
  EXPECT_EQ(outcome.end.reason, EndReason::kCancelled);
  EXPECT_EQ(outcome.tokens.size(), 1U);
  EXPECT_EQ(outcome.ends, 1);
}

std::unique_ptr<const models::Model> golden(const std::string& name) {
  return std::move(
      load::load_checkpoint(std::filesystem::path(SAKER_SOURCE_DIR) / "tests/golden" / name).model
  );
}

// Requests that partly begin alike, greedy and sampled, with and without drafts.
std::vector<SequenceRequest> mixed_requests(std::mt19937_64& random, int count, int kv_bits) {
  const auto draw = [&random](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  std::vector<SequenceRequest> requests;
  for (int i = 0; i < count; ++i) {
    SequenceRequest request;
    const int shared = draw(0, 2) * 70;
    for (int at = 0; at < shared; ++at) {
      request.prompt.push_back(at * 7 % 90);
    }
    const int own = draw(1, 120);
    for (int at = 0; at < own; ++at) {
      request.prompt.push_back(draw(0, 90));
    }
    request.max_tokens = draw(1, 60);
    request.kv_bits = kv_bits;
    vary_options(request, static_cast<std::size_t>(i));
    if (i % 3 == 1) {
      request.speculation.drafter = DrafterKind::kPromptLookup;
    }
    requests.push_back(std::move(request));
  }
  return requests;
}

cache::PrefixCacheOptions short_interval() {
  cache::PrefixCacheOptions options;
  options.interval = 64;
  return options;
}

struct Case {
  const char* model;
  int kv_bits = kernels::kUnquantizedBits;
  bool shares = true;
};

// Sequences that have to wait all the time, in memory for little more than one of them.
TEST(RowMemory, PreemptionKeepsBitsAndTheBudget) {
  for (const Case& one : std::initializer_list<Case>{
           {"qwen3"},
           {"qwen3", 8},
           {"qwen3", kernels::kUnquantizedBits, false},
           {"gemma3"},
           {"qwen3_5"}
       }) {
    SCOPED_TRACE(fmt::format("{}, {} bits", one.model, one.kv_bits));
    const auto model = golden(one.model);
    std::mt19937_64 random(7);
    const auto requests = mixed_requests(random, 24, one.kv_bits);
    const std::size_t single =
        model->make_cache({.kv_bits = one.kv_bits}).bytes_with(140 + 120 + 60, 32);
    const std::size_t budget = single * 3 / 2;
    cache::PrefixCache prefixes(short_interval());
    std::vector<Outcome> together(requests.size());
    BatchGenerator generator(
        *model,
        {.prefill_step = 32, .max_batch = 5, .memory = {.budget = budget}},
        one.shares ? &prefixes : nullptr
    );
    std::vector<std::uint64_t> ids;
    for (std::size_t i = 0; i < requests.size(); ++i) {
      SequenceRequest request = copy_of(requests[i]);
      request.prefix_key = one.shares ? "one" : "";
      ids.push_back(generator.add(std::move(request), std::make_unique<Forgetting>(together[i])));
    }
    while (!generator.idle()) {
      generator.step();
      generator.preempt(ids[random() % ids.size()]);
    }
    EXPECT_GT(generator.preemptions(), 20);
    EXPECT_LE(peak(generator), budget);
    fmt::print(
        "{}, {} bits: {} preemptions, {:.2f} of the budget used\n",
        one.model,
        one.kv_bits,
        generator.preemptions(),
        static_cast<double>(peak(generator)) / static_cast<double>(budget)
    );
    for (std::size_t i = 0; i < requests.size(); ++i) {
      SCOPED_TRACE("request " + std::to_string(i));
      expect_as_alone(*model, together[i], requests[i]);
    }
  }
}

// The rows of the answer before it had to wait are still there.
TEST(RowMemory, RowsComeBackFromThePrefixCache) {
  const auto model = golden("qwen3");
  cache::PrefixCache prefixes(short_interval());
  Outcome outcome;
  BatchGenerator generator(*model, {}, &prefixes);
  SequenceRequest request = request_of(Ids(200, 3), 10);
  request.prefix_key = "one";
  const auto id = generator.add(std::move(request), std::make_unique<Recorder>(outcome));
  for (int i = 0; i < 5; ++i) {
    generator.step();
  }
  generator.preempt(id);
  run_all(generator);
  EXPECT_EQ(prefixes.stats().restored_tokens, 204);
  EXPECT_EQ(outcome.end.cached_tokens, 0);
  expect_same(outcome, run_alone(*model, request_of(Ids(200, 3), 10)));
}

TEST(RowMemory, RowsOfPrefixesGiveWayFirst) {
  const auto model = golden("qwen3");
  const std::size_t single = model->make_cache({}).bytes_with(256, 512);
  cache::PrefixCache prefixes(short_interval());
  BatchGenerator generator(*model, {.memory = {.budget = single + single / 4}}, &prefixes);
  for (int i = 0; i < 3; ++i) {
    Outcome outcome;
    SequenceRequest request = request_of(Ids(240, i), 10);
    request.prefix_key = "one";
    generator.add(std::move(request), std::make_unique<Forgetting>(outcome));
    run_all(generator);
    EXPECT_EQ(outcome.end.reason, EndReason::kLength);
  }
  EXPECT_EQ(generator.preemptions(), 0);
  EXPECT_GT(prefixes.stats().evictions, 0);
  EXPECT_LE(peak(generator), single + single / 4);
}

}  // namespace
}  // namespace saker::generate
