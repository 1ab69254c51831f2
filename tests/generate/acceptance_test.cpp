// SPDX-License-Identifier: Apache-2.0
// Two tokens that come out of rounds of drafting have the target's joint distribution.
#include "saker/generate/batch_generator.h"
#include "saker/generate/drafters/draft_model.h"

#include "tests/generate/joint_draws.h"
#include "tests/generate/runs.h"
#include "tests/support/chi_square.h"
#include "tests/support/fake_model.h"
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace saker::generate {
namespace {

using saker::testing::chi_square_p;
using saker::testing::FakeModel;

Ids prompt() {
  return {3, 1, 4, 1};
}

FakeModel target_model() {
  return FakeModel({.vocab_size = kDrawnVocabulary, .spread = 3.0F});
}

FakeModel draft_model() {
  return FakeModel({.vocab_size = kDrawnVocabulary, .spread = 1.0F});
}

NextLogits logits_of(const FakeModel& model) {
  return [&model](const Ids& context) { return model.logits(context); };
}

struct Case {
  const char* name;
  DrafterKind drafter;
  Acceptance acceptance;
};

class Rounds : public ::testing::TestWithParam<Case> {};

TEST_P(Rounds, GiveTheTargetsJointDistribution) {
  const FakeModel target = target_model();
  const FakeModel draft = draft_model();
  Drafters drafters;
  drafters[DrafterKind::kDraftModel] = std::make_unique<DraftModel>(draft, 512);
  BatchGenerator generator(
      target, {.prefill_step = 4096, .max_batch = kDrawnBatch}, nullptr, std::move(drafters)
  );
  const Speculation how{GetParam().drafter, 2, GetParam().acceptance};
  expect_joint_distribution(generator, logits_of(target), prompt(), how, draws());
}

INSTANTIATE_TEST_SUITE_P(
    Acceptance,
    Rounds,
    ::testing::Values(
        Case{"plain", DrafterKind::kNone, Acceptance::kCoupled},
        Case{"coupled", DrafterKind::kDraftModel, Acceptance::kCoupled},
        Case{"rejection", DrafterKind::kDraftModel, Acceptance::kRejection},
        Case{"lookup", DrafterKind::kPromptLookup, Acceptance::kRejection}
    ),
    [](const auto& test) { return std::string(test.param.name); }
);

// Stop tokens are drafted too, and come as often as they should.
TEST(Acceptance, AnswersEndAsOftenAsTheyShould) {
  const FakeModel target = target_model();
  const FakeModel draft = draft_model();
  constexpr std::int32_t kStop = 2;
  Drafters drafters;
  drafters[DrafterKind::kDraftModel] = std::make_unique<DraftModel>(draft, 512);
  BatchGenerator generator(
      target, {.prefill_step = 4096, .max_batch = kDrawnBatch}, nullptr, std::move(drafters)
  );
  const int requests = draws() / 4;
  std::vector<Outcome> outcomes(static_cast<std::size_t>(requests));
  for (int seed = 0; seed < requests; ++seed) {
    SequenceRequest request = request_of(prompt(), 4);
    request.sampling.temperature = 1.0;
    request.sampling.seed = static_cast<std::uint64_t>(seed);
    request.stop_tokens = {kStop};
    request.speculation = {DrafterKind::kDraftModel, 3, Acceptance::kRejection};
    generator.add(
        std::move(request), std::make_unique<Recorder>(outcomes[static_cast<std::size_t>(seed)])
    );
  }
  while (!generator.idle()) {
    generator.step();
  }
  // Of those that go on after one token: whether the second one ends the answer.
  std::vector<int> counts(2 * kDrawnVocabulary, 0);
  std::vector<double> probabilities(2 * kDrawnVocabulary, 0.0);
  const std::vector<double> first = next_probabilities(logits_of(target), prompt());
  for (std::int32_t i = 0; i < kDrawnVocabulary; ++i) {
    const double stops = next_probabilities(logits_of(target), {3, 1, 4, 1, i})[kStop];
    const auto cell = 2 * static_cast<std::size_t>(i);
    const double share =
        i == kStop ? 0.0 : first[static_cast<std::size_t>(i)] / (1.0 - first[kStop]);
    probabilities[cell] = share * stops;
    probabilities[cell + 1] = share * (1.0 - stops);
  }
  for (const Outcome& outcome : outcomes) {
    if (!outcome.tokens.empty()) {
      const auto cell = 2 * static_cast<std::size_t>(outcome.tokens.front());
      ++counts[cell + (outcome.tokens.size() > 1 ? 1 : 0)];
    }
  }
  EXPECT_GT(chi_square_p(counts, probabilities), kUnlikely);
}

}  // namespace
}  // namespace saker::generate
