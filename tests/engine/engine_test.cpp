// SPDX-License-Identifier: Apache-2.0
// The engine over the tiny checkpoints of tests/golden.
#include "saker/engine/engine.h"

#include "saker/base/error.h"
#include "saker/base/log_prob.h"
#include "saker/engine/measures/perplexity.h"
#include "saker/kernels/gpu/backend.h"

#include "tests/engine/model_folder.h"
#include "tests/support/environment.h"
#include "tests/support/expect_error.h"
#include "tests/support/temporary_dir.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <filesystem>
#include <future>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace saker::engine {
namespace {

using ::testing::HasSubstr;
using Ids = std::vector<std::int32_t>;

class EngineModels : public ::testing::TestWithParam<std::string> {};

// The answers to 100 requests have the same bits alone, in a batch, in chunks, on any threads.
TEST_P(EngineModels, AnswersDoNotDependOnWhatElseRuns) {
  const ModelFolder folder(GetParam());
  const std::vector<Request> requests = mixed_requests(100);
  std::vector<GenerateResult> alone;
  {
    const auto engine = folder.load({.threads = 1, .batch = 1, .prefix_cache = 0});
    for (const Request& request : requests) {
      alone.push_back(engine->generate(request));
    }
  }
  const std::vector<EngineOptions> ways = {
      {.threads = 2, .batch = 8},
      {.threads = 1, .prefill_step = 1, .batch = 8},
      {.threads = 3, .prefill_step = 7, .batch = 8},
      {.threads = 4, .prefill_step = 64, .batch = 16},
  };
  for (const EngineOptions& options : ways) {
    SCOPED_TRACE("prefill_step " + std::to_string(options.prefill_step));
    const auto engine = folder.load(options);
    const std::vector<GenerateResult> together = run_together(*engine, requests);
    for (std::size_t i = 0; i < requests.size(); ++i) {
      SCOPED_TRACE("request " + std::to_string(i));
      expect_same(alone[i], together[i]);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Goldens,
    EngineModels,
    ::testing::Values("qwen3", "qwen3_q4", "gemma3", "gemma4", "gemma4_small_q4", "mistral")
);

TEST(Engine, ScoreAndGenerateAgreeToTheBit) {
  const ModelFolder folder("qwen3");
  const auto engine = folder.load();
  Request request;
  request.prompt.tokens = Ids{3, 14, 15, 92};
  request.output.max_tokens = 20;
  request.output.ignore_eos = true;
  request.output.logprobs = 4;
  const GenerateResult generated = engine->generate(request);
  const ScoreResult scored = engine->score(
      ScoreRequest{.tokens = generated.tokens, .prompt_tokens = *request.prompt.tokens, .top_k = 4}
  );
  ASSERT_EQ(scored.tokens.size(), 24U);
  const ViewScores& view = scored.views.at(0);
  double sum = 0.0;
  for (std::size_t i = 0; i < 20; ++i) {
    EXPECT_EQ(*view.logprobs[4 + i], generated.logprobs[i].logprob);
    sum += generated.logprobs[i].logprob;
  }
  EXPECT_EQ(view.sum, sum);
  EXPECT_TRUE(view.is_greedy);
  ASSERT_TRUE(view.next);
  EXPECT_EQ(view.next->vocab_size, 96);
  double mass = std::exp(*view.next->tail_logprob);
  for (const double logprob : view.next->logprobs) {
    mass += std::exp(logprob);
  }
  EXPECT_NEAR(mass, 1.0, 1e-12);
}

TEST(Engine, ScoresOfABatchAreThoseOfSingleRuns) {
  const ModelFolder folder("qwen3");
  const auto engine = folder.load();
  const std::vector<ScoreRequest> requests = {
      {.tokens = Ids{3, 14, 15}, .top_k = 4},
      {.tokens = Ids{400}},
      {.tokens = Ids{5}, .top_k = 2},
      {.tokens = Ids{3, 14, 15, 92, 6}, .kv_bits = 8},
      {.tokens = Ids{5, 6}, .kv_bits = 5},
  };
  const std::vector<ScoreOutcome> outcomes = engine->score(requests);
  ASSERT_EQ(outcomes.size(), requests.size());
  for (const std::size_t bad : {1, 4}) {
    ASSERT_TRUE(std::holds_alternative<Error>(outcomes[bad]));
    EXPECT_EQ(std::get<Error>(outcomes[bad]).code(), ErrorCode::kInvalidArgument);
  }
  for (const std::size_t good : {0, 2, 3}) {
    const auto& result = std::get<ScoreResult>(outcomes[good]);
    const ScoreResult alone = engine->score(requests[good]);
    EXPECT_EQ(result.tokens, alone.tokens);
    EXPECT_EQ(result.views[0].logprobs, alone.views[0].logprobs);
    EXPECT_EQ(result.views[0].next, alone.views[0].next);
  }
  EXPECT_TRUE(engine->score(std::span<const ScoreRequest>{}).empty());
  EXPECT_THROW(engine->score(ScoreRequest{.tokens = Ids{}}), Error);
}

// What runs on a GPU does not claim the CPU's kernels.
TEST(Engine, SaysThatAGpuRuns) {
  const ModelFolder folder("qwen3");
  Request request;
  request.prompt.tokens = Ids{3, 14, 15};
  request.output.max_tokens = 4;
  request.output.ignore_eos = true;
  kernels::pretend_gpu(true);
  {
    const auto engine = folder.load();
    EXPECT_EQ(engine->facts().instruction_set, "gpu");
    EXPECT_EQ(engine->generate(request).tokens.size(), 4U);
  }
  kernels::pretend_gpu(false);
}

// Each token's score is that of the first window that has it; windows begin where the stride says,
// the last one too.
TEST(Engine, LongTextsAreScoredInWindowsWhenAskedFor) {
  const ModelFolder folder("qwen3");
  const auto engine = folder.load();
  ScoreRequest request{.tokens = Ids{}, .top_k = 3};
  for (int i = 0; i < 1000; ++i) {
    request.tokens->push_back((i * i + 3 * i) % 96);
  }
  EXPECT_THROW(engine->score(request), Error);
  request.stride = 512;
  EXPECT_THROW(engine->score(request), Error);
  request.stride = 300;
  const ScoreResult result = engine->score(request);
  const ViewScores& view = result.views.at(0);
  ASSERT_EQ(view.logprobs.size(), 1000U);
  int scored_to = 1;
  double sum = 0.0;
  for (const int begin : {0, 300, 600}) {
    const int end = std::min(begin + 512, 1000);
    const Ids window(request.tokens->begin() + begin, request.tokens->begin() + end);
    const ScoreResult alone = engine->score(ScoreRequest{.tokens = window, .top_k = 3});
    for (int at = scored_to; at < end; ++at) {
      const auto& expected = alone.views[0].logprobs[static_cast<std::size_t>(at - begin)];
      EXPECT_EQ(view.logprobs[static_cast<std::size_t>(at)], expected);
      sum += *expected;
    }
    scored_to = end;
    EXPECT_EQ(end == 1000, alone.views[0].next == view.next);
  }
  EXPECT_EQ(view.sum, sum);
  EXPECT_EQ(view.mean, sum / 999);
  // One token more than the context fits where it is only scored.
  request.tokens->resize(513);
  EXPECT_NE(engine->score(request).views.at(0).logprobs[512], std::nullopt);
  request.stride = 0;
  EXPECT_THROW(engine->score(request), Error);
  request.top_k = 0;
  const auto whole = engine->score(request).views.at(0).logprobs;
  request.stride = 300;
  const auto moved = engine->score(request).views.at(0).logprobs;
  EXPECT_NE(moved[512], whole[512]);
  EXPECT_TRUE(std::equal(moved.begin(), moved.begin() + 512, whole.begin()));
  request.tokens->resize(40000, 1);
  request.stride = 1;
  EXPECT_THROW(engine->score(request), Error);  // Windows of 20 million tokens.
}

TEST(Engine, ScoresAndPerplexityHaveTheSameWindows) {
  const ModelFolder folder("qwen3");
  const auto engine = folder.load();
  for (const int count : {513, 700, 812, 1000}) {
    ScoreRequest request{.tokens = Ids{}, .stride = 300};
    for (int i = 0; i < count; ++i) {
      request.tokens->push_back((i * i + 3 * i) % 96);
    }
    const ViewScores view = engine->score(request).views.at(0);
    const auto measured =
        measure_perplexity(*engine, *request.tokens, {.context = 512, .stride = 300});
    EXPECT_EQ(measured.scored, count - 1);
    EXPECT_NEAR(measured.mean_loss, -view.mean, 1e-12);
  }
}

TEST(Engine, GivesTheLogitsBehindTheScores) {
  const ModelFolder folder("qwen3");
  const auto engine = folder.load();
  const auto vocab = static_cast<std::size_t>(engine->facts().vocab_size);
  for (const int count : {1, 7, 512, 1000}) {
    ScoreRequest request{.tokens = Ids{}, .stride = 300};
    for (int i = 0; i < count; ++i) {
      request.tokens->push_back((i * i + 3 * i) % 96);
    }
    std::vector<std::vector<float>> rows(static_cast<std::size_t>(count));
    request.take_logits = [&](std::size_t view, std::size_t row, std::span<const float> logits) {
      EXPECT_EQ(view, 0U);
      EXPECT_TRUE(rows.at(row).empty());
      rows.at(row).assign(logits.begin(), logits.end());
    };
    const ViewScores view = engine->score(request).views.at(0);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      ASSERT_EQ(rows[i].size(), vocab);
      if (i + 1 < rows.size()) {
        const auto id = request.tokens->at(i + 1);
        EXPECT_EQ(log_prob(rows[i], id, log_sum_exp(rows[i])), view.logprobs[i + 1]);
      }
    }
    // Scores are those without.
    request.take_logits = {};
    EXPECT_EQ(engine->score(request).views.at(0).logprobs, view.logprobs);
  }
  ScoreRequest request{.tokens = Ids(513, 1)};
  engine->score(request);  // The last token is only scored.
  request.take_logits = [](std::size_t, std::size_t, std::span<const float>) {};
  EXPECT_THROW(engine->score(request), Error);
}

TEST(Engine, LogitsAreNotTakenFromKeptScores) {
  const ModelFolder folder("qwen3");
  const auto engine = folder.load();
  ScoreInstruments instruments;
  ScoreRequest request{.tokens = Ids{1, 2, 3}};
  engine->score({&request, 1}, instruments);
  std::atomic<int> rows = 0;
  request.take_logits = [&](std::size_t, std::size_t, std::span<const float>) { ++rows; };
  engine->score({&request, 1}, instruments);
  EXPECT_EQ(rows, 3);
}

// A conversation, with windows that were passed and rows that cannot be forgotten.
TEST(Engine, SessionsChangeNoBits) {
  for (const char* golden : {"qwen3", "gemma3"}) {
    const ModelFolder folder(golden);
    const auto engine = folder.load();
    const std::uint64_t session = engine->open_session();
    Ids conversation = {1, 2, 3};
    int cached = 0;
    for (int turn = 0; turn < 4; ++turn) {
      Request request;
      request.prompt.tokens = conversation;
      request.output.max_tokens = 9;
      request.output.logprobs = 0;
      request.output.ignore_eos = true;
      const GenerateResult alone = engine->generate(request);
      request.prompt.session = session;
      const GenerateResult continued = engine->generate(request);
      expect_same(alone, continued);
      cached += continued.stats.cached_tokens;
      conversation.insert(conversation.end(), continued.tokens.begin(), continued.tokens.end());
      conversation.insert(conversation.end(), {turn, 50 + turn});
      if (turn == 2) {
        conversation.resize(10);
      }
    }
    EXPECT_GT(cached, 20);
  }
}

TEST(Engine, TextPromptsAndFacts) {
  const ModelFolder folder("qwen3");
  folder.write("generation_config.json", {{"do_sample", true}, {"temperature", 0.5}, {"top_k", 3}});
  int layers = 0;
  const auto engine = folder.load({.on_load = [&](int done, int) { layers = done; }});
  EXPECT_GT(layers, 0);
  EXPECT_EQ(engine->facts().model_type, "qwen3");
  EXPECT_EQ(engine->facts().vocab_size, 96);
  EXPECT_EQ(engine->facts().context_length, 512);
  EXPECT_GT(engine->facts().weight_bytes, 0U);
  EXPECT_GT(engine->facts().load_s, 0.0);
  EXPECT_EQ(engine->chat_template(), nullptr);
  EXPECT_EQ(engine->recommended_sampling().temperature, 0.5);
  EXPECT_EQ(engine->recommended_sampling().top_k, 3);
  EXPECT_GT(engine->cache_bytes(100, 16), engine->cache_bytes(10, 16));
  Request request;
  request.prompt.text = "!";
  EXPECT_EQ(engine->prompt_tokens(request), engine->tokenizer()->encode("!"));
  EXPECT_EQ(engine->generate(request).prompt_tokens, engine->tokenizer()->encode("!"));
}

TEST(Engine, ItsOwnThreadMayBeItsLastOwner) {
  const ModelFolder folder("qwen3");
  std::shared_ptr<Engine> engine = folder.load();
  Request request;
  request.prompt.tokens = Ids{1};
  request.output.max_tokens = 300;
  Stream stream = engine->submit(request);
  stream.on_ready([engine, caller = std::this_thread::get_id()]() mutable {
    if (std::this_thread::get_id() != caller) {
      engine.reset();
    }
  });
  engine.reset();
  while (stream.next()) {
  }
  EXPECT_EQ(stream.result().finish_reason, FinishReason::kCancelled);
}

TEST(Engine, ACacheThatCannotBeSavedFailsItsRequest) {
  const ModelFolder folder("qwen3");
  const testing::TemporaryDir dir;
  const auto gone = dir.path() / "gone";
  std::filesystem::create_directory(gone);
  Request request;
  request.prompt.tokens = Ids{1};
  request.output.max_tokens = 300;
  request.output.ignore_eos = true;
  request.output.cache_out = gone / "cache.safetensors";
  const auto engine = folder.load();
  Stream stream = engine->submit(request);
  stream.next();
  std::filesystem::remove_all(gone);
  testing::expect_error(ErrorCode::kNotFound, {"cache.safetensors"}, [&] { stream.result(); });
}

TEST(Engine, BenchMeasuresRates) {
  const ModelFolder folder("qwen3_q4");
  const auto engine = folder.load();
  const BenchResult result = engine->bench(
      {.prompt_tokens = 16, .generation_tokens = 4, .batch = 2, .depth = 8, .repetitions = 2}, {}
  );
  EXPECT_EQ(result.prompt_tps.size(), 2U);
  EXPECT_EQ(result.generation_tps.size(), 2U);
  EXPECT_GT(result.generation_tps[0], 0.0);
  EXPECT_THROW(engine->bench({.prompt_tokens = 1000}, {}), Error);
  EXPECT_THROW(engine->bench({.batch = 1 << 30}, {}), Error);
  EXPECT_THROW(engine->cache_bytes(-1, 16), Error);
  EXPECT_THROW(engine->cache_bytes(1, 7), Error);
}

TEST(Engine, FactsSayWhatWasAskedForAndWhatWasFound) {
  const auto demo = std::filesystem::path(SAKER_SOURCE_DIR) / "models/demo";
  const auto by_path = Engine::load(demo, {});
  EXPECT_EQ(by_path->facts().requested, demo.string());
  EXPECT_EQ(by_path->facts().path, demo);
  const testing::TemporaryDir cache;
  const std::string commit(40, 'c');
  cache.write("models--org--demo/refs/main", commit);
  const auto snapshot = cache.path() / "models--org--demo/snapshots" / commit;
  std::filesystem::create_directories(snapshot.parent_path());
  std::filesystem::create_directory_symlink(demo, snapshot);
  const testing::HubEnvironment set({{"HF_HUB_CACHE", cache.path().string()}});
  const auto by_name = Engine::load("org/demo", {});
  EXPECT_EQ(by_name->facts().requested, "org/demo");
  EXPECT_EQ(by_name->facts().path, snapshot);
  testing::expect_error(ErrorCode::kNotFound, {"org/other"}, [] { Engine::load("org/other", {}); });
}

TEST(Engine, LimitsOfTheMachine) {
  const ModelFolder folder("qwen3");
  const MachineLimits limits = folder.load()->measure_limits();
  EXPECT_GT(limits.read_gbps, 0.01);
  EXPECT_LT(limits.read_gbps, 1e5);
  EXPECT_GE(limits.bf16_gflops, 0.0);
}

TEST(Engine, RefusesWhatItCannotRun) {
  EXPECT_THROW(Engine::load("/nonexistent/model", {}), Error);
  const ModelFolder folder("qwen3");
  EXPECT_THROW(folder.load({.threads = -1}), Error);
  EXPECT_THROW(folder.load({.prefill_step = 0}), Error);
  EXPECT_THROW(folder.load({.batch = 0}), Error);
  EXPECT_THROW(folder.load({.device = "toaster"}), Error);
  const auto engine = folder.load();
  Request request;
  request.prompt.tokens = Ids(600, 1);
  try {
    engine->generate(request);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(error.what(), HasSubstr("600"));
    EXPECT_THAT(error.what(), HasSubstr("512"));
  }
  EXPECT_THROW(engine->score(ScoreRequest{.tokens = Ids{400}}), Error);
}

}  // namespace
}  // namespace saker::engine
