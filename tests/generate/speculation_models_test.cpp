// SPDX-License-Identifier: Apache-2.0
// Drafting over real layers and caches: every architecture, whole caches and windows, plain rows
// and codes, each with drafters that are always, often and hardly ever right. One batch holds all
// depths, and each of its answers is that of plain decoding alone.
#include "saker/base/error.h"
#include "saker/generate/batch_generator.h"
#include "saker/generate/drafters/draft_model.h"

#include "tests/generate/runs.h"
#include "tests/models/random_model.h"
#include "tests/support/fake_model.h"
#include "tests/support/scripted_drafter.h"
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace saker::generate {
namespace {

using saker::testing::ScriptedDrafter;

constexpr std::array<int, 8> kDepths = {1, 2, 4, 7, 16, kAutoDepth, 7, 4};

Json config_of(std::string_view model_type) {
  Json config = models::small_config(model_type);
  // Passed by all answers, and no multiple of a page.
  config["sliding_window"] = 11;
  config["sliding_window_pattern"] = 2;
  config["use_sliding_window"] = true;
  config["max_window_layers"] = 1;
  return config;
}

std::vector<SequenceRequest> requests_of(int kv_bits, int max_kv_size) {
  std::vector<SequenceRequest> requests;
  for (std::size_t i = 0; i < kDepths.size(); ++i) {
    SequenceRequest& request = requests.emplace_back();
    // Prompts that repeat themselves give prompt lookup something to find.
    for (std::size_t j = 0; j < 9 + 8 * i; ++j) {
      request.prompt.push_back(static_cast<std::int32_t>((j % (4 + i) * 7 + i) % 50));
    }
    request.max_tokens = 40;
    request.kv_bits = kv_bits;
    request.max_kv_size = max_kv_size;
    vary_options(request, i);
  }
  return requests;
}

// Plain answers, and the same by a drafter, in one batch.
class Cell {
 public:
  Cell(const models::Model& model, std::vector<SequenceRequest> requests)
      : model_(model), requests_(std::move(requests)) {
    for (const SequenceRequest& request : requests_) {
      plain_.push_back(run_alone(model_, copy_of(request)));
    }
  }

  std::vector<Ids> answers() const {
    std::vector<Ids> result;
    result.reserve(plain_.size());
    for (const Outcome& outcome : plain_) {
      result.push_back(outcome.end.context);
    }
    return result;
  }

  // How many draft tokens were right, and how many there were.
  std::pair<int, int> expect_same_with(DrafterKind kind, Drafters drafters) const {
    std::vector<Outcome> outcomes(requests_.size());
    BatchGenerator generator(
        model_, {.prefill_step = 16, .max_batch = 8}, nullptr, std::move(drafters)
    );
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      SequenceRequest request = copy_of(requests_[i]);
      request.speculation = {kind, kDepths.at(i)};
      generator.add(std::move(request), std::make_unique<Recorder>(outcomes[i]));
    }
    while (!generator.idle()) {
      generator.step();
    }
    std::pair<int, int> counts;
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
      SCOPED_TRACE("depth " + std::to_string(kDepths.at(i)));
      expect_same(outcomes[i], plain_[i]);
      counts.first += outcomes[i].end.speculation.accepted;
      counts.second += outcomes[i].end.speculation.drafted;
    }
    return counts;
  }

 private:
  const models::Model& model_;
  std::vector<SequenceRequest> requests_;
  std::vector<Outcome> plain_;
};

Drafters draft_model(const models::Model& model) {
  Drafters drafters;
  drafters[DrafterKind::kDraftModel] = std::make_unique<DraftModel>(model, 16);
  return drafters;
}

class Families : public ::testing::TestWithParam<std::string_view> {};

TEST_P(Families, AnswerAsWithoutDrafts) {
  const auto model = models::random_model(config_of(GetParam()), {});
  const auto other = models::random_model(config_of("llama"), {.seed = 5});
  for (const auto& [kv_bits, max_kv_size] : {std::pair(16, 0), {16, 13}, {8, 0}, {4, 0}}) {
    SCOPED_TRACE("kv_bits " + std::to_string(kv_bits));
    const Cell cell(*model, requests_of(kv_bits, max_kv_size));
    // Its own draft model is right wherever rows and noise are the same.
    const auto [right, drafted] =
        cell.expect_same_with(DrafterKind::kDraftModel, draft_model(*model));
    EXPECT_GT(drafted, 100);
    EXPECT_EQ(right, drafted);
    cell.expect_same_with(DrafterKind::kDraftModel, draft_model(*other));
    cell.expect_same_with(DrafterKind::kPromptLookup, {});
    ScriptedDrafter::Log log;
    Drafters scripted;
    scripted[DrafterKind::kDraftModel] = std::make_unique<ScriptedDrafter>(
        cell.answers(), [](std::size_t place) { return place % 5 == 0; }, log
    );
    EXPECT_GT(cell.expect_same_with(DrafterKind::kDraftModel, std::move(scripted)).first, 50);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Speculation,
    Families,
    ::testing::ValuesIn(models::supported_model_types()),
    [](const auto& test) { return std::string(test.param); }
);

// A model whose head gives nothing but NaN.
class BrokenModel final : public saker::testing::FakeModel {
 public:
  BrokenModel() : FakeModel({.vocab_size = 50}) {}

  mx::array unembed(const mx::array& hidden, const nn::RowAdapters& /*adapters*/) const override {
    return mx::full({hidden.shape(0), 50}, std::numeric_limits<float>::quiet_NaN());
  }
};

TEST(SpeculationModels, ADraftModelWithoutNumbersIsLeftAside) {
  const auto model = models::random_model(config_of("llama"), {});
  const BrokenModel broken;
  const Cell cell(*model, requests_of(16, 0));
  const auto [right, drafted] =
      cell.expect_same_with(DrafterKind::kDraftModel, draft_model(broken));
  EXPECT_EQ(drafted, 0);
}

TEST(SpeculationModels, ATargetWithoutNumbersFailsAsWithoutDrafts) {
  const BrokenModel broken;
  const auto model = models::random_model(config_of("llama"), {});
  Outcome outcome;
  BatchGenerator generator(broken, {}, nullptr, draft_model(*model));
  SequenceRequest request = request_of({1, 2, 3});
  request.speculation = {DrafterKind::kDraftModel, 4};
  generator.add(std::move(request), std::make_unique<Recorder>(outcome));
  while (!generator.idle()) {
    generator.step();
  }
  EXPECT_EQ(outcome.end.reason, EndReason::kFailed);
  EXPECT_THROW(std::rethrow_exception(outcome.end.error), Error);
}

TEST(SpeculationModels, AShortOrSmallDraftModelDraftsWhatItCan) {
  const auto model = models::random_model(config_of("llama"), {});
  const Cell cell(*model, requests_of(16, 0));
  Json config = config_of("llama");
  config["max_position_embeddings"] = 30;
  const auto is_short = models::random_model(config, {});
  const auto [right, drafted] =
      cell.expect_same_with(DrafterKind::kDraftModel, draft_model(*is_short));
  EXPECT_GT(drafted, 0);
  EXPECT_EQ(right, drafted);
  config = config_of("llama");
  config["vocab_size"] = 20;
  const auto is_small = models::random_model(config, {.seed = 3});
  cell.expect_same_with(DrafterKind::kDraftModel, draft_model(*is_small));
  config["vocab_size"] = 90;
  const auto is_large = models::random_model(config, {.seed = 3});
  cell.expect_same_with(DrafterKind::kDraftModel, draft_model(*is_large));
}

}  // namespace
}  // namespace saker::generate
