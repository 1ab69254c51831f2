// SPDX-License-Identifier: Apache-2.0
// Two tokens that come out of rounds of drafting have the target's joint distribution.
#include "saker/base/log_prob.h"
#include "saker/generate/batch_generator.h"
#include "saker/generate/drafters/draft_model.h"

#include "tests/generate/runs.h"
#include "tests/support/chi_square.h"
#include "tests/support/fake_model.h"
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace saker::generate {
namespace {

using saker::testing::chi_square_p;
using saker::testing::FakeModel;

constexpr int kVocabulary = 5;
constexpr int kBatch = 256;
constexpr double kUnlikely = 1e-3;

// 2 * 10^5 of them, fewer or more by SAKER_DRAWS.
int draws() {
  const char* wanted = std::getenv("SAKER_DRAWS");
  return wanted == nullptr ? 200'000 : std::stoi(wanted);
}

std::vector<double> next_probabilities(const FakeModel& model, const Ids& context) {
  const std::vector<float> logits = model.logits(context);
  const double log_sum = log_sum_exp(logits);
  std::vector<double> probabilities(kVocabulary);
  for (std::int32_t id = 0; id < kVocabulary; ++id) {
    probabilities[static_cast<std::size_t>(id)] = std::exp(log_prob(logits, id, log_sum));
  }
  return probabilities;
}

// Counts the second and third tokens of answers: the first one ends the prompt's pass, which has no
// drafts.
class Pairs : public Listener {
 public:
  explicit Pairs(std::vector<int>& counts) : counts_(counts) {}

  bool on_token(const GeneratedToken& token) override {
    tokens_.push_back(token.id);
    return true;
  }

  void on_end(SequenceEnd /*end*/) override {
    const int cell = (tokens_.at(0) * kVocabulary + tokens_.at(1)) * kVocabulary + tokens_.at(2);
    ++counts_[static_cast<std::size_t>(cell)];
  }

 private:
  std::vector<int>& counts_;
  Ids tokens_;
};

struct Case {
  const char* name;
  DrafterKind drafter;
  Acceptance acceptance;
};

class Rounds : public ::testing::TestWithParam<Case> {};

TEST_P(Rounds, GiveTheTargetsJointDistribution) {
  const FakeModel target({.vocab_size = kVocabulary, .spread = 3.0F});
  const FakeModel draft({.vocab_size = kVocabulary, .spread = 1.0F});
  const Ids prompt = {3, 1, 4, 1};
  std::vector<double> probabilities;
  const std::vector<double> first = next_probabilities(target, prompt);
  for (std::int32_t i = 0; i < kVocabulary; ++i) {
    const std::vector<double> second = next_probabilities(target, {3, 1, 4, 1, i});
    for (std::int32_t j = 0; j < kVocabulary; ++j) {
      for (const double third : next_probabilities(target, {3, 1, 4, 1, i, j})) {
        probabilities.push_back(
            first[static_cast<std::size_t>(i)] * second[static_cast<std::size_t>(j)] * third
        );
      }
    }
  }
  Drafters drafters;
  drafters[DrafterKind::kDraftModel] = std::make_unique<DraftModel>(draft, 512);
  BatchGenerator generator(
      target, {.prefill_step = 4096, .max_batch = kBatch}, nullptr, std::move(drafters)
  );
  std::vector<int> counts(probabilities.size(), 0);
  for (int seed = 0; seed < draws(); ++seed) {
    SequenceRequest request = request_of(prompt, 4);
    request.sampling.temperature = 1.0;
    request.sampling.seed = static_cast<std::uint64_t>(seed);
    request.speculation = {GetParam().drafter, 2, GetParam().acceptance};
    generator.add(std::move(request), std::make_unique<Pairs>(counts));
    const bool full = seed % kBatch == kBatch - 1 || seed + 1 == draws();
    while (full && !generator.idle()) {
      generator.step();
    }
  }
  EXPECT_GT(chi_square_p(counts, probabilities), kUnlikely);
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
  const FakeModel target({.vocab_size = kVocabulary, .spread = 3.0F});
  const FakeModel draft({.vocab_size = kVocabulary, .spread = 1.0F});
  const Ids prompt = {3, 1, 4, 1};
  constexpr std::int32_t kStop = 2;
  Drafters drafters;
  drafters[DrafterKind::kDraftModel] = std::make_unique<DraftModel>(draft, 512);
  BatchGenerator generator(
      target, {.prefill_step = 4096, .max_batch = kBatch}, nullptr, std::move(drafters)
  );
  const int requests = draws() / 4;
  std::vector<Outcome> outcomes(static_cast<std::size_t>(requests));
  for (int seed = 0; seed < requests; ++seed) {
    SequenceRequest request = request_of(prompt, 4);
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
  std::vector<int> counts(2 * kVocabulary, 0);
  std::vector<double> probabilities(2 * kVocabulary, 0.0);
  const std::vector<double> first = next_probabilities(target, prompt);
  for (std::int32_t i = 0; i < kVocabulary; ++i) {
    const double stops = next_probabilities(target, {3, 1, 4, 1, i})[kStop];
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
