// SPDX-License-Identifier: Apache-2.0
// Rounds by hand: a model of eight tokens where each is followed by the next number, drafts as
// given, and what must come of them, pass by pass. A drafted stop token and what follows it are not
// run: the row before it tells whether the answer ends there, and theirs would not be kept.
#include "saker/generate/batch_generator.h"

#include "tests/generate/runs.h"
#include "tests/support/fake_model.h"
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <ostream>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace saker::generate {
namespace {

constexpr int kTokens = 8;

// After a token comes the next one, after the last itself.
class Successor final : public saker::testing::FakeModel {
 public:
  Successor() : FakeModel({.vocab_size = kTokens}) {}

  mx::array forward(const mx::array& ids, nn::ForwardContext& context) const override {
    FakeModel::forward(ids, context);
    return mx::reshape(mx::astype(ids, mx::float32), {ids.shape(0), 1});
  }

  mx::array unembed(const mx::array& hidden, const nn::RowContext& /*adapters*/) const override {
    const auto next = mx::minimum(mx::add(hidden, mx::array(1.0F)), mx::array(kTokens - 1.0F));
    const auto is_next = mx::equal(next, mx::reshape(mx::arange(kTokens), {1, kTokens}));
    return mx::multiply(mx::astype(is_next, mx::float32), mx::array(30.0F));
  }
};

// Proposes these tokens in its first rounds, and nothing after them.
class Given final : public Drafter {
 public:
  explicit Given(std::vector<Ids> drafts) : drafts_(std::move(drafts)) {}

  std::unique_ptr<DraftState> start(const SequenceRequest& /*request*/) override {
    return std::make_unique<State>();
  }

  void propose(std::span<Proposal> proposals) override {
    for (Proposal& proposal : proposals) {
      if (round_ < drafts_.size()) {
        proposal.tokens = drafts_[round_++];
        ASSERT_LE(static_cast<int>(proposal.tokens.size()), proposal.depth);
      }
    }
  }

 private:
  struct State final : DraftState {
    void acknowledge(int /*count*/) override {}
  };

  std::vector<Ids> drafts_;
  std::size_t round_ = 0;
};

struct Case {
  std::string name;
  std::vector<Ids> drafts;
  std::int32_t stop = 7;
  int max_tokens = 50;
  // What comes of them.
  Ids tokens;
  std::vector<int> rows;  // Of the passes.
  int accepted = 0;
  std::int64_t cached = 0;  // Rows at the end; the prompt is one token.
};

std::ostream& operator<<(std::ostream& out, const Case& one) {
  return out << one.name;
}

class RoundsByHand : public ::testing::TestWithParam<Case> {};

TEST_P(RoundsByHand, GiveWhatTheyMust) {
  const Case& one = GetParam();
  for (const double temperature : {0.0, 1.0}) {
    const Successor model;
    Drafters drafters;
    drafters[DrafterKind::kDraftModel] = std::make_unique<Given>(one.drafts);
    BatchGenerator generator(model, {}, nullptr, std::move(drafters));
    SequenceRequest request = request_of({1}, one.max_tokens);
    request.stop_tokens = {one.stop};
    request.sampling.temperature = temperature;
    request.sampling.seed = 42;
    request.logprobs = 1;
    request.speculation = {DrafterKind::kDraftModel, 4};
    Outcome outcome;
    generator.add(std::move(request), std::make_unique<Recorder>(outcome));
    while (!generator.idle()) {
      generator.step();
    }
    std::vector<int> rows;
    rows.reserve(model.passes.size());
    for (const auto& pass : model.passes) {
      rows.push_back(pass.rows);
    }
    EXPECT_EQ(outcome.tokens, one.tokens);
    EXPECT_EQ(rows, one.rows);
    EXPECT_EQ(outcome.end.speculation.accepted, one.accepted);
    EXPECT_EQ(outcome.end.cache->offset(), one.cached);
    EXPECT_EQ(outcome.details.size(), outcome.tokens.size());
    EXPECT_EQ(
        outcome.end.reason,
        static_cast<int>(one.tokens.size()) == one.max_tokens ? EndReason::kLength
                                                              : EndReason::kStopToken
    );
  }
}

INSTANTIATE_TEST_SUITE_P(
    Speculation,
    RoundsByHand,
    ::testing::Values(
        Case{
            .name = "all_are_right",
            .drafts = {{3, 4, 5}},
            .max_tokens = 5,
            .tokens = {2, 3, 4, 5, 6},
            .rows = {1, 4},
            .accepted = 3,
            .cached = 5,
        },
        Case{
            .name = "none_is_right",
            .drafts = {{5, 5, 5}},
            .max_tokens = 5,
            .tokens = {2, 3, 4, 5, 6},
            .rows = {1, 4, 1, 1, 1},
            .accepted = 0,
            .cached = 5,
        },
        Case{
            .name = "the_third_is_wrong",
            .drafts = {{3, 4, 0, 6}},
            .tokens = {2, 3, 4, 5, 6},
            .rows = {1, 5, 1, 1},
            .accepted = 2,
            .cached = 6,
        },
        Case{
            .name = "the_last_is_wrong",
            .drafts = {{3, 4, 5, 1}},
            .tokens = {2, 3, 4, 5, 6},
            .rows = {1, 5, 1},
            .accepted = 3,
            .cached = 6,
        },
        Case{
            .name = "a_wrong_end_ends_nothing",
            .drafts = {{3, 7}},
            .tokens = {2, 3, 4, 5, 6},
            .rows = {1, 2, 1, 1, 1},
            .accepted = 1,
            .cached = 6,
        },
        Case{
            .name = "the_end_is_drafted",
            .drafts = {{3, 4, 5}},
            .stop = 4,
            .tokens = {2, 3},
            .rows = {1, 2},
            .accepted = 1,
            .cached = 3,
        },
        Case{
            .name = "what_follows_the_end_is_not_run",
            .drafts = {{3, 4, 0, 0}},
            .stop = 4,
            .tokens = {2, 3},
            .rows = {1, 2},
            .accepted = 1,
            .cached = 3,
        },
        Case{
            .name = "several_rounds",
            .drafts = {{3, 0}, {}, {6, 7}},
            .tokens = {2, 3, 4, 5, 6},
            .rows = {1, 3, 1, 2},
            .accepted = 2,
            .cached = 6,
        },
        Case{
            .name = "all_of_the_answer_in_a_round",
            .drafts = {{3, 4, 5, 6}},
            .tokens = {2, 3, 4, 5, 6},
            .rows = {1, 5},
            .accepted = 4,
            .cached = 6,
        },
        Case{
            .name = "the_drafter_starts_late",
            .drafts = {{}, {4, 5, 6}},
            .tokens = {2, 3, 4, 5, 6},
            .rows = {1, 1, 4},
            .accepted = 3,
            .cached = 6,
        },
        Case{
            .name = "the_third_of_four_is_the_end",
            .drafts = {{3, 4, 5, 6}},
            .stop = 5,
            .tokens = {2, 3, 4},
            .rows = {1, 3},
            .accepted = 2,
            .cached = 4,
        },
        Case{
            .name = "nothing_is_drafted",
            .drafts = {},
            .tokens = {2, 3, 4, 5, 6},
            .rows = {1, 1, 1, 1, 1, 1},
            .accepted = 0,
            .cached = 6,
        }
    ),
    [](const auto& test) { return test.param.name; }
);

}  // namespace
}  // namespace saker::generate
