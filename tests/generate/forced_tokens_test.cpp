// SPDX-License-Identifier: Apache-2.0
// Tokens that a mask forces are drafts: answers stay the same, and take fewer passes.
#include "saker/generate/batch_generator.h"

#include "tests/generate/runs.h"
#include "tests/support/fake_model.h"
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace saker::generate {
namespace {

using saker::testing::FakeModel;

enum class Guess : std::uint8_t { kNone, kRight, kWrong, kThrows };

// Every other run of eight tokens is forced: the token at place n is n % 7.
class Forces final : public sample::TokenMask {
 public:
  Forces(Guess guess, int& asked) : guess_(guess), asked_(asked) {}

  bool fill(std::span<std::uint32_t> bits) override {
    const auto token = forced_at(place_);
    std::ranges::fill(bits, token ? 0U : ~0U);
    if (token) {
      bits[0] |= 1U << *token;
    }
    return false;
  }

  std::vector<std::int32_t> forced() override {
    ++asked_;
    if (guess_ == Guess::kThrows) {
      throw std::runtime_error("too much work");
    }
    Ids ids;
    for (int place = place_; guess_ != Guess::kNone && forced_at(place); ++place) {
      ids.push_back(guess_ == Guess::kRight ? *forced_at(place) : 7);
    }
    return ids;
  }

  bool accept(std::int32_t /*token*/) override {
    ++place_;
    return true;
  }

 private:
  static std::optional<std::int32_t> forced_at(int place) {
    return place / 8 % 2 == 1 ? std::optional(place % 7) : std::nullopt;
  }

  Guess guess_;
  int& asked_;
  int place_ = 0;
};

struct Answered {
  Outcome outcome;
  int asked = 0;
};

Answered run_with(Guess guess, const Speculation& speculation, double temperature = 0.0) {
  const FakeModel model;
  SequenceRequest request = request_of({3, 1, 4}, 64);
  request.speculation = speculation;
  request.sampling.temperature = temperature;
  request.logprobs = 2;
  Answered run;
  request.mask = std::make_unique<Forces>(guess, run.asked);
  run.outcome = run_alone(model, std::move(request));
  return run;
}

TEST(ForcedTokens, AreDraftsThatAreRight) {
  for (const double temperature : {0.0, 1.0}) {
    const Outcome plain = run_with(Guess::kNone, {}, temperature).outcome;
    EXPECT_EQ(plain.end.drafter, DrafterKind::kNone);
    const Outcome forced = run_with(Guess::kRight, {}, temperature).outcome;
    expect_same(forced, plain);
    EXPECT_EQ(forced.end.drafter, DrafterKind::kConstraint);
    EXPECT_EQ(forced.end.speculation.rounds, 4);
    EXPECT_EQ(forced.end.speculation.drafted, 4 * 8 - 1);  // The last token needs no draft.
    EXPECT_EQ(forced.end.speculation.accepted, 4 * 8 - 1);
  }
}

TEST(ForcedTokens, TakeTheRoundFromADrafter) {
  const Speculation lookup{.drafter = DrafterKind::kPromptLookup};
  const Outcome plain = run_with(Guess::kNone, {}).outcome;
  const Outcome forced = run_with(Guess::kRight, lookup).outcome;
  expect_same(forced, plain);
  EXPECT_EQ(forced.end.drafter, DrafterKind::kPromptLookup);
  EXPECT_GE(forced.end.speculation.accepted, 4 * 8 - 1);
}

TEST(ForcedTokens, AWrongGuessIsNotRepeatedForEver) {
  const Outcome plain = run_with(Guess::kNone, {}).outcome;
  const Answered wrong = run_with(Guess::kWrong, {});
  expect_same(wrong.outcome, plain);
  EXPECT_EQ(wrong.outcome.end.speculation.accepted, 0);
  EXPECT_LE(wrong.outcome.end.speculation.rounds, 8);
}

TEST(ForcedTokens, AMaskThatFailsToForceEndsNothing) {
  const Outcome plain = run_with(Guess::kNone, {}).outcome;
  expect_same(run_with(Guess::kThrows, {}).outcome, plain);
}

TEST(ForcedTokens, NoDraftsAreWanted) {
  const Answered none = run_with(Guess::kRight, {.depth = 0});
  EXPECT_EQ(none.asked, 0);
  EXPECT_EQ(none.outcome.end.speculation.rounds, 0);
}

}  // namespace
}  // namespace saker::generate
