// SPDX-License-Identifier: Apache-2.0
// Prompts with common beginnings, with and without the rows of earlier ones.
#include "saker/engine/engine.h"

#include "tests/engine/model_folder.h"
#include "tests/support/temporary_dir.h"
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace saker::engine {
namespace {

using Ids = std::vector<std::int32_t>;

// Branches of a tree of prompts, up to a few hundred tokens each, in any order; some twice.
std::vector<Request> branching_requests(int count, std::mt19937& random) {
  const auto draw = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  std::vector<Ids> prompts;
  for (int i = 0; i < count; ++i) {
    Ids prompt;
    if (!prompts.empty() && draw(0, 5) > 0) {
      prompt = prompts[static_cast<std::size_t>(draw(0, i - 1))];
      prompt.resize(static_cast<std::size_t>(draw(1, static_cast<int>(prompt.size()))));
    }
    const int more = draw(0, 3) == 0 ? draw(60, 200) : draw(prompt.empty() ? 1 : 0, 30);
    for (int t = 0; t < more; ++t) {
      prompt.push_back(draw(0, 95));
    }
    prompt.resize(std::min<std::size_t>(prompt.size(), 480));
    prompts.push_back(std::move(prompt));
  }
  std::vector<Request> requests;
  for (const Ids& prompt : prompts) {
    Request request;
    request.prompt.tokens = prompt;
    request.output.max_tokens = draw(1, 12);
    request.output.ignore_eos = true;
    request.output.logprobs = 3;
    request.sampling.temperature = draw(0, 1) * 0.8;
    request.sampling.seed = static_cast<std::uint64_t>(draw(0, 99));
    request.placement.max_kv_size = draw(0, 4) == 0 ? 40 : 0;
    request.placement.kv_bits = std::array{16, 8, 4}[static_cast<std::size_t>(draw(0, 2))];
    requests.push_back(std::move(request));
  }
  return requests;
}

class EnginePrefixModels : public ::testing::TestWithParam<std::string> {};

// Ids and log-probabilities have the same bits as in single runs that know nothing before.
TEST_P(EnginePrefixModels, AnswersAreThoseOfColdRuns) {
  const ModelFolder folder(GetParam());
  std::mt19937 random(11);
  const std::vector<Request> requests = branching_requests(100, random);
  std::vector<GenerateResult> cold;
  {
    const auto engine = folder.load({.batch = 1, .prefix_cache = 0});
    for (const Request& request : requests) {
      cold.push_back(engine->generate(request));
      EXPECT_EQ(cold.back().stats.cached_tokens, 0);
    }
    EXPECT_EQ(engine->prefix_cache_stats().lookups, 0);
  }
  // Linear layers hold states, at every place where they can start again.
  const bool linear = GetParam() == "qwen3_5" || GetParam() == "lfm2" || GetParam() == "nemotron_h";
  const bool has_large_states = GetParam() == "nemotron_h";
  const std::size_t little = has_large_states ? 1'500'000 : linear ? 600'000 : 450'000;
  const saker::testing::TemporaryDir dir;
  const std::vector<EngineOptions> ways = {
      {.batch = 1},
      {.batch = 8},
      {.prefill_step = 16, .batch = 8},
      {.prefill_step = 500, .batch = 4, .prefix_cache = little},
      {.batch = 8, .prefix_cache_dir = dir.path() / "rows"},
      {.prefix_cache = little, .prefix_cache_dir = dir.path() / "spilled"},
  };
  for (EngineOptions options : ways) {
    SCOPED_TRACE(options.prefill_step * 100 + options.batch);
    if (linear) {
      options.prefix_cache_interval = 16;
    }
    auto engine = folder.load(options);
    std::vector<std::size_t> order(requests.size());
    std::iota(order.begin(), order.end(), 0U);
    PrefixCacheStats stats;
    for (int round = 0; round < 2; ++round) {
      if (!options.prefix_cache_dir.empty()) {
        engine.reset();  // Leaves its rows in files.
        engine = folder.load(options);
      }
      std::shuffle(order.begin(), order.end(), random);
      std::vector<Request> shuffled;
      shuffled.reserve(order.size());
      for (const std::size_t index : order) {
        shuffled.push_back(requests[index]);
      }
      const auto warm = run_together(*engine, shuffled);
      for (std::size_t i = 0; i < order.size(); ++i) {
        SCOPED_TRACE("request " + std::to_string(order[i]));
        expect_same(cold[order[i]], warm[i]);
      }
      stats = engine->prefix_cache_stats();
    }
    EXPECT_GT(stats.hits, 60);
    // Less with less memory.
    EXPECT_GT(stats.restored_tokens * 8, stats.prompt_tokens);
    EXPECT_LE(stats.bytes, options.prefix_cache);
    EXPECT_EQ(stats.evictions > 0, options.prefix_cache == little);
    EXPECT_EQ(stats.loaded_tokens > 0, !options.prefix_cache_dir.empty());
  }
}

// Whatever the size of a pass, sliding layers can start again anywhere.
TEST(EnginePrefixes, SlidingLayersRunOneTokenAfterAnyKnownPrefix) {
  const ModelFolder folder("gemma3");
  const auto engine = folder.load({.prefill_step = 512});
  Request request;
  request.prompt.tokens.emplace();
  for (int i = 0; i < 400; ++i) {
    request.prompt.tokens->push_back(i * 31 % 96);
  }
  request.output.max_tokens = 1;
  EXPECT_EQ(engine->generate(request).stats.cached_tokens, 0);
  for (const std::size_t length : {400U, 399U, 65U, 64U, 2U}) {
    request.prompt.tokens->resize(length);
    EXPECT_EQ(engine->generate(request).stats.cached_tokens, static_cast<int>(length) - 1);
  }
}

// Nor does it matter whether the rows are a prompt's or an answer's, up to the interval.
TEST(EnginePrefixes, PromptsBranchOffInsideOfAnswers) {
  constexpr int kInterval = 128;
  const ModelFolder folder("gemma3");
  const auto cold = folder.load({.prefix_cache = 0});
  const auto engine = folder.load({.prefix_cache_interval = kInterval});
  Request request;
  request.prompt.tokens = Ids(10, 7);
  request.output.max_tokens = 300;
  request.output.ignore_eos = true;
  const GenerateResult first = engine->generate(request);
  expect_same(first, cold->generate(request));
  Ids context = *request.prompt.tokens;
  context.insert(context.end(), first.tokens.begin(), first.tokens.end());
  request.output.max_tokens = 3;
  request.output.logprobs = 2;
  for (const std::size_t length : {305U, 257U, 130U, 66U, 20U}) {
    request.prompt.tokens =
        Ids(context.begin(), context.begin() + static_cast<std::ptrdiff_t>(length));
    request.prompt.tokens->push_back(context[length] == 5 ? 6 : 5);
    const GenerateResult warm = engine->generate(request);
    expect_same(warm, cold->generate(request));
    EXPECT_GE(warm.stats.cached_tokens, static_cast<int>(length) - kInterval);
  }
}

// How many tokens of `prompt` a prefix cache that forgets nothing had to run, after `contexts`.
std::size_t needed_tokens(const Ids& prompt, const std::vector<Ids>& contexts) {
  std::ptrdiff_t known = 0;
  for (const Ids& context : contexts) {
    known = std::max(known, std::ranges::mismatch(prompt, context).in1 - prompt.begin());
  }
  return prompt.size() - std::min(static_cast<std::size_t>(known), prompt.size() - 1);
}

// 20 turns, each the whole conversation with something new at its end; every third one has changed
// an earlier message, as agents do that shorten or correct what tools said. Grows to 16384 tokens.
TEST_P(EnginePrefixModels, AgentsRunLittleMoreThanTheyMust) {
  constexpr int kTurns = 20;
  constexpr int kAnswer = 80;
  const ModelFolder folder(GetParam());
  Json config = folder.read("config.json");
  (config.contains("text_config") ? config["text_config"] : config)["max_position_embeddings"] =
      32768;
  folder.write("config.json", config);
  const auto engine = folder.load();
  std::mt19937 random(4);
  const auto draw = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  Ids conversation;
  std::vector<Ids> contexts;
  std::size_t run = 0;
  std::size_t needed = 0;
  for (int turn = 1; turn <= kTurns; ++turn) {
    if (turn % 3 == 0) {
      const auto size = static_cast<int>(conversation.size());
      const auto at = conversation.begin() + draw(size / 2, size - 200);
      for (auto token = at; token < at + 50; ++token) {
        *token = draw(0, 95);
      }
    }
    while (conversation.size() < static_cast<std::size_t>(turn * 16384 / kTurns - kAnswer)) {
      conversation.push_back(draw(0, 95));
    }
    Request request;
    request.prompt.tokens = conversation;
    request.output.max_tokens = kAnswer;
    request.output.ignore_eos = true;
    const GenerateResult result = engine->generate(request);
    run += conversation.size() - static_cast<std::size_t>(result.stats.cached_tokens);
    needed += needed_tokens(conversation, contexts);
    conversation.insert(conversation.end(), result.tokens.begin(), result.tokens.end());
    contexts.push_back(conversation);
    contexts.back().pop_back();  // Chosen, but not run.
  }
  RecordProperty("run", static_cast<int>(run));
  RecordProperty("needed", static_cast<int>(needed));
  EXPECT_GE(run, needed);
  EXPECT_LE(run * 100, needed * 105);
}

TEST(EnginePrefixes, RequestsOfOneBatchRunTheirCommonPrefixOnce) {
  const ModelFolder folder("qwen3");
  const auto engine = folder.load({.prefill_step = 100, .batch = 16});
  std::vector<Request> requests(16);
  for (int i = 0; i < 16; ++i) {
    requests[i].prompt.tokens = Ids(300, 7);
    requests[i].prompt.tokens->push_back(i);
    requests[i].output.max_tokens = 2;
  }
  run_together(*engine, requests);
  const PrefixCacheStats stats = engine->prefix_cache_stats();
  EXPECT_EQ(stats.lookups, 16);
  EXPECT_EQ(stats.hits, 15);
  EXPECT_EQ(stats.restored_tokens, 15 * 300);
}

INSTANTIATE_TEST_SUITE_P(
    Goldens,
    EnginePrefixModels,
    ::testing::Values(
        "llama",
        "qwen3",
        "gemma3",
        "mistral",
        "gemma2",
        "gemma4_small",
        "qwen3_5",
        "lfm2",
        "nemotron_h"
    )
);

TEST(EnginePrefixes, SaltsKeepRowsApart) {
  const ModelFolder folder("qwen3");
  const auto engine = folder.load();
  Request request;
  request.prompt.tokens = Ids(100, 7);
  request.output.max_tokens = 2;
  engine->generate(request);
  EXPECT_EQ(engine->generate(request).stats.cached_tokens, 99);
  request.placement.cache_salt = "mine";
  EXPECT_EQ(engine->generate(request).stats.cached_tokens, 0);
  EXPECT_EQ(engine->generate(request).stats.cached_tokens, 99);
}

}  // namespace
}  // namespace saker::engine
