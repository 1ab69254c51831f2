// SPDX-License-Identifier: Apache-2.0
// Results that are known, numbers of what ran, and the trace; the look at a model before that.
#include "saker/engine/score_instruments.h"

#include "saker/engine/measures/preflight.h"

#include "tests/engine/model_folder.h"
#include "tests/support/expect_error.h"
#include "tests/support/temporary_dir.h"
#include <gtest/gtest.h>

#include <fstream>

namespace saker::engine {
namespace {

using testing::expect_error;
using testing::TemporaryDir;

ScoreRequest request(std::vector<std::int32_t> tokens, std::vector<View> views = {}) {
  return {.tokens = std::move(tokens), .top_k = 3, .views = std::move(views)};
}

View adapted(double strength) {
  View view{.key = std::to_string(strength), .strength = strength};
  view.adapter = std::filesystem::path(SAKER_SOURCE_DIR) / "tests/golden/adapters/peft_llama";
  return view;
}

std::vector<std::optional<double>> logprobs(const ScoreOutcome& outcome, std::size_t view = 0) {
  return std::get<ScoreResult>(outcome).views.at(view).logprobs;
}

std::vector<Json> lines_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::vector<Json> lines;
  for (std::string line; std::getline(file, line);) {
    lines.push_back(Json::parse(line));
  }
  return lines;
}

TEST(ScoreInstruments, KnownViewsDoNotRunAgain) {
  const ModelFolder folder("llama");
  const auto engine = folder.load();
  ScoreInstruments instruments;
  const ScoreRequest base = request({3, 14, 15});
  const auto first = engine->score({&base, 1}, instruments);
  EXPECT_EQ(instruments.stats().cache_misses, 1);
  // Of these three views of the same tokens, one is known; strengths are told apart exactly.
  const ScoreRequest all = request({3, 14, 15}, {View{}, adapted(0.5), adapted(0.5000001)});
  const auto second = engine->score({&all, 1}, instruments);
  const ScoreStats stats = instruments.stats();
  EXPECT_EQ(stats.cache_hits, 1);
  EXPECT_EQ(stats.cache_misses, 3);
  EXPECT_EQ(stats.forward_passes, 2);
  EXPECT_EQ(stats.hit_rate(), 0.25);
  EXPECT_EQ(logprobs(first.front()), logprobs(second.front()));
  EXPECT_EQ(std::get<ScoreResult>(second.front()).views.at(0).view, "base");
  EXPECT_NE(logprobs(second.front(), 1), logprobs(second.front(), 2));
  EXPECT_EQ(logprobs(second.front(), 1), logprobs(engine->score({&all, 1}).front(), 1));
  // Another question about the same tokens is another entry.
  ScoreRequest other = base;
  other.top_k = 5;
  engine->score({&other, 1}, instruments);
  other.prompt_tokens = {3};
  other.tokens = {14, 15};
  engine->score({&other, 1}, instruments);
  EXPECT_EQ(instruments.stats().cache_hits, 1);
}

TEST(ScoreInstruments, EnginesThatShareThemShareNoResults) {
  const ModelFolder llama("llama");
  const ModelFolder qwen("qwen2");
  ScoreInstruments instruments;
  const ScoreRequest question = request({3, 14, 15});
  const auto one = llama.load();
  const auto other = qwen.load();
  one->score({&question, 1}, instruments);
  const auto answer = other->score({&question, 1}, instruments);
  EXPECT_EQ(instruments.stats().cache_hits, 0);
  EXPECT_EQ(logprobs(answer.front()), logprobs(other->score({&question, 1}).front()));
}

TEST(ScoreInstruments, BatchesRunOnlyWhatIsNew) {
  const ModelFolder folder("llama");
  const auto engine = folder.load();
  ScoreInstruments instruments;
  const ScoreRequest requests[] = {
      request({3, 1}), request({3, 2}), request({100000}), request({3, 4})
  };
  const auto before = engine->score(std::span(requests).first(1), instruments);
  const auto outcomes = engine->score(requests, instruments);
  EXPECT_EQ(logprobs(outcomes[0]), logprobs(before[0]));
  EXPECT_TRUE(std::holds_alternative<Error>(outcomes[2]));
  const auto alone = engine->score(requests);
  EXPECT_EQ(logprobs(outcomes[3]), logprobs(alone[3]));
  const ScoreStats stats = instruments.stats();
  EXPECT_EQ(stats.cache_hits, 1);
  EXPECT_EQ(stats.cache_misses, 3);
  EXPECT_EQ(stats.batches_sent, 1);
}

TEST(ScoreInstruments, TheLongestUnusedLeavesFirst) {
  ScoreInstruments instruments({.cache_entries = 2});
  const auto call = [](std::string key) {
    return ScoreCall{.key = std::move(key), .view_id = "base", .op = "tokens"};
  };
  instruments.add(call("a"), {}, 0.0);
  instruments.add(call("b"), {}, 0.0);
  EXPECT_TRUE(instruments.find(call("a")));
  instruments.add(call("c"), {}, 0.0);
  EXPECT_FALSE(instruments.find(call("b")));
  EXPECT_TRUE(instruments.find(call("a")));
  EXPECT_TRUE(instruments.find(call("c")));
}

TEST(ScoreInstruments, TracesEveryCallUntilClosed) {
  const TemporaryDir dir;
  const auto path = dir.path() / "trace.jsonl";
  const ModelFolder folder("llama");
  const auto engine = folder.load();
  ScoreInstruments instruments({.trace = path});
  const ScoreRequest scored = request({3, 14, 15}, {View{}, adapted(0.25)});
  engine->score({&scored, 1}, instruments);
  instruments.set_current_probe("delta_kl");
  engine->score({&scored, 1}, instruments);
  const auto lines = lines_of(path);
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_TRUE(lines[0]["probe"].is_null());
  EXPECT_EQ(lines[1]["view_id"], "scaled_0.25");
  EXPECT_EQ(lines[1]["hit"], false);
  EXPECT_EQ(lines[3]["probe"], "delta_kl");
  EXPECT_EQ(lines[3]["hit"], true);
  EXPECT_EQ(lines[3]["op"], "tokens");
  EXPECT_EQ(lines[3]["top_k"], 3);
  EXPECT_EQ(lines[0]["prompt_hash"], lines[3]["prompt_hash"]);
  instruments.close();
  instruments.close();
  engine->score({&scored, 1}, instruments);
  EXPECT_EQ(lines_of(path).size(), 4U);
  expect_error(ErrorCode::kNotFound, {"trace"}, [&] {
    ScoreInstruments({.trace = dir.path() / "no" / "folder"});
  });
}

TEST(ScoreInstruments, ATraceThatTakesNoMoreIsAnErrorUntilItIsClosed) {
  const ModelFolder folder("llama");
  const auto engine = folder.load();
  ScoreInstruments instruments({.trace = "/dev/full"});
  const ScoreRequest question = request({3, 14, 15});
  for (int i = 0; i < 2; ++i) {
    expect_error(ErrorCode::kInternal, {"/dev/full", "trace", "No space left"}, [&] {
      engine->score({&question, 1}, instruments);
    });
  }
  instruments.close();
  EXPECT_EQ(engine->score({&question, 1}, instruments).size(), 1U);
}

TEST(Preflight, NamesTheViewThatIsBroken) {
  const auto engine =
      Engine::load(std::filesystem::path(SAKER_SOURCE_DIR) / "tests/golden/llama", {});
  const View views[] = {View{}, adapted(1.0), adapted(1e38)};
  const auto fine = preflight_finite_check(*engine, std::span(views).first(2));
  EXPECT_TRUE(fine.ok) << fine.reason;
  const auto broken = preflight_finite_check(*engine, views);
  EXPECT_FALSE(broken.ok);
  EXPECT_NE(broken.reason.find(views[2].key), std::string::npos) << broken.reason;
}

}  // namespace
}  // namespace saker::engine
