// SPDX-License-Identifier: Apache-2.0
#include "saker/engine/scoring_views.h"

#include "tests/support/expect_error.h"
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <stdexcept>

namespace saker::engine {
namespace {

using testing::expect_error;

constexpr std::string_view kPrompt = "Once upon a time";

class ScoringViewObjects : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    engine = Engine::load(std::filesystem::path(SAKER_SOURCE_DIR) / "models/demo", {});
  }

  static void TearDownTestSuite() { engine.reset(); }

  static std::vector<NamedAdapter> adapters() { return {{"", "no/such/adapter"}}; }

  static std::unique_ptr<Engine> engine;
};

std::unique_ptr<Engine> ScoringViewObjects::engine;

TEST_F(ScoringViewObjects, GiveTheEnginesScores) {
  const ScoringViews views(*engine, adapters());
  const auto base = views.enter("base");
  const auto again = views.enter("0");  // Beside it. Loads no adapter that is not there.
  EXPECT_EQ(base.id(), "base");
  EXPECT_EQ(again.id(), "scaled_0.00");
  const auto request = logprob_of(std::string(kPrompt), " there");
  EXPECT_EQ(base.logprob_of(std::string(kPrompt), " there"), engine->score(request).views[0].sum);
  const auto text = base.rolling_logprob(std::string(kPrompt));
  EXPECT_EQ(text.views[0].logprobs.size(), text.tokens.size());
  EXPECT_EQ(base.next_token_dist(std::string(kPrompt), 5).token_ids.size(), 5U);
  EXPECT_EQ(base.score({request, rolling_logprob(std::string(kPrompt))}).size(), 2U);
  GenerateRequest prompt;
  prompt.prompt = kPrompt;
  prompt.max_tokens = 3;
  const auto answer = base.generate(prompt);
  EXPECT_EQ(answer.tokens.size(), 3U);
}

TEST_F(ScoringViewObjects, HaveTheIdsOfDlmSway) {
  const ScoringViews views(*engine, adapters());
  EXPECT_EQ(views.enter("ft").id(), "ft");
  EXPECT_EQ(views.enter("0.5").id(), "scaled_0.50");
  EXPECT_EQ(views.enter("null:7").id(), "null_7");
  EXPECT_EQ(views.enter("null:7:0.02:2").id(), "null_7_rank2.00");
}

TEST_F(ScoringViewObjects, ErrorsAreTheRequests) {
  const ScoringViews views(*engine, adapters());
  const auto base = views.enter("base");
  expect_error(ErrorCode::kInvalidArgument, {"completion"}, [&] {
    base.logprob_of(std::string(kPrompt), "");
  });
  expect_error(ErrorCode::kInvalidArgument, {"top_k", "0"}, [&] {
    base.next_token_dist(std::string(kPrompt), 0);
  });
  expect_error(ErrorCode::kNotFound, {"no/such/adapter"}, [&] {
    views.enter("ft").rolling_logprob(std::string(kPrompt));
  });
}

TEST_F(ScoringViewObjects, ASingleSlotIsReleasedWhateverHappens) {
  const ScoringViews views(*engine, adapters(), ViewSlots::kSingle);
  const auto probe = [&] {
    const auto base = views.enter("base");
    expect_error(
        ErrorCode::kInvalidArgument,
        {R"("base" already active; exit it before entering "ft")"},
        [&] { views.enter("ft"); }
    );
    throw std::runtime_error("a probe that fails");
  };
  EXPECT_THROW(probe(), std::runtime_error);
  auto first = std::make_unique<ScoringView>(views.enter("ft"));
  const ScoringView moved = std::move(*first);
  first.reset();
  expect_error(ErrorCode::kInvalidArgument, {"ft"}, [&] { views.enter("base"); });
}

TEST_F(ScoringViewObjects, KnownResultsAreCounted) {
  ScoreInstruments instruments;
  const ScoringViews views(*engine, adapters(), ViewSlots::kAny, &instruments);
  const auto base = views.enter("base");
  EXPECT_EQ(
      base.logprob_of(std::string(kPrompt), " there"),
      base.logprob_of(std::string(kPrompt), " there")
  );
  EXPECT_EQ(instruments.stats().cache_hits, 1);
}

}  // namespace
}  // namespace saker::engine
