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
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace saker::generate {
namespace {

using saker::testing::ScriptedDrafter;

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
  for (std::size_t i = 0; i < 8; ++i) {
    SequenceRequest& request = requests.emplace_back();
    // Prompts that repeat themselves give prompt lookup something to find.
    for (std::size_t j = 0; j < 9 + 8 * i; ++j) {
      request.prompt.push_back(static_cast<std::int32_t>((j % (4 + i) * 7 + i) % 50));
    }
    request.max_tokens = answer_tokens(40);
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
  std::pair<int, int> expect_same_with(
      DrafterKind kind, const std::function<Drafters()>& make_drafters
  ) const {
    std::pair<int, int> counts;
    for (std::size_t shift = 0; shift < kAllDepths.size(); ++shift) {
      const auto [accepted, drafted] = expect_same_with(kind, make_drafters(), shift);
      counts.first += accepted;
      counts.second += drafted;
    }
    return counts;
  }

 private:
  std::pair<int, int> expect_same_with(DrafterKind kind, Drafters drafters, std::size_t shift)
      const {
    std::vector<Outcome> outcomes(requests_.size());
    BatchGenerator generator(
        model_, {.prefill_step = 16, .max_batch = 8}, nullptr, std::move(drafters)
    );
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      SequenceRequest request = copy_of(requests_[i]);
      request.speculation = {kind, shifted_depth(i, shift)};
      generator.add(std::move(request), std::make_unique<Recorder>(outcomes[i]));
    }
    while (!generator.idle()) {
      generator.step();
    }
    std::pair<int, int> counts;
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
      SCOPED_TRACE(fmt::format("prompt {}, depth {}", i, shifted_depth(i, shift)));
      expect_same(outcomes[i], plain_[i]);
      counts.first += outcomes[i].end.speculation.accepted;
      counts.second += outcomes[i].end.speculation.drafted;
    }
    return counts;
  }

  const models::Model& model_;
  std::vector<SequenceRequest> requests_;
  std::vector<Outcome> plain_;
};

std::function<Drafters()> draft_model(const models::Model& model) {
  return [&model] {
    Drafters drafters;
    drafters[DrafterKind::kDraftModel] = std::make_unique<DraftModel>(model, 16);
    return drafters;
  };
}

bool every_fifth_is_wrong(std::size_t place) {
  return place % 5 == 0;
}

std::function<Drafters()> scripted(
    std::vector<Ids> answers, ScriptedDrafter::IsWrong is_wrong, ScriptedDrafter::Log& log
) {
  return [answers = std::move(answers), is_wrong = std::move(is_wrong), &log] {
    Drafters drafters;
    drafters[DrafterKind::kDraftModel] = std::make_unique<ScriptedDrafter>(answers, is_wrong, log);
    return drafters;
  };
}

class Families : public ::testing::TestWithParam<std::string_view> {};

TEST_P(Families, AnswerAsWithoutDrafts) {
  const auto model = models::random_model(config_of(GetParam()), {});
  const auto other = models::random_model(config_of("llama"), {.seed = 5});
  for (const auto& [kv_bits, max_kv_size] : {std::pair(16, 0), {16, 13}, {8, 0}, {4, 0}}) {
    if (kv_bits < 16 && models::has_latents(GetParam())) {
      continue;  // Their rows are not quantized.
    }
    SCOPED_TRACE("kv_bits " + std::to_string(kv_bits));
    const Cell cell(*model, requests_of(kv_bits, max_kv_size));
    // Its own draft model is right wherever rows and noise are the same.
    const auto [right, drafted] =
        cell.expect_same_with(DrafterKind::kDraftModel, draft_model(*model));
    EXPECT_GT(drafted, 100);
    EXPECT_EQ(right, drafted);
    cell.expect_same_with(DrafterKind::kDraftModel, draft_model(*other));
    cell.expect_same_with(DrafterKind::kPromptLookup, [] { return Drafters(); });
    ScriptedDrafter::Log log;
    const auto often_right = scripted(cell.answers(), every_fifth_is_wrong, log);
    EXPECT_GT(cell.expect_same_with(DrafterKind::kDraftModel, often_right).first, 50);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Speculation,
    Families,
    ::testing::ValuesIn(models::supported_architectures()),
    [](const auto& test) { return std::string(test.param); }
);

TEST(SpeculationModels, TheDeepestDraftsAreTakenBackInPart) {
  const auto model = models::random_model(config_of("qwen3_5"), {});
  SequenceRequest request = request_of({3, 1, 4, 1, 5}, 150);
  const Outcome plain = run_alone(*model, copy_of(request));
  ScriptedDrafter::Log log;
  const auto often_wrong = [](std::size_t place) { return place % 40 == 0; };
  BatchGenerator generator(*model, {}, nullptr, scripted({plain.end.context}, often_wrong, log)());
  request.speculation = {DrafterKind::kDraftModel, kMaxDraftDepth};
  Outcome outcome;
  generator.add(std::move(request), std::make_unique<Recorder>(outcome));
  while (!generator.idle()) {
    generator.step();
  }
  expect_same(outcome, plain);
  EXPECT_EQ(std::ranges::max(log.proposed), kMaxDraftDepth);
  EXPECT_LT(outcome.end.speculation.accepted, outcome.end.speculation.drafted);
}

// The answer to one request, ended by its listener after `stop_after` tokens (-1: not).
Outcome run_drafted(
    const models::Model& model, SequenceRequest request, Drafters drafters, int stop_after
) {
  Outcome outcome;
  BatchGenerator generator(model, {.prefill_step = 16}, nullptr, std::move(drafters));
  request.speculation = {DrafterKind::kDraftModel, 7};
  generator.add(std::move(request), std::make_unique<Recorder>(outcome, stop_after));
  while (!generator.idle()) {
    generator.step();
  }
  return outcome;
}

// Rows after the one where an answer ended were run in the same pass: its cache lacks them.
TEST_P(Families, AnswersCancelledInARoundGoOnAsIfTheyWerePlain) {
  constexpr int kLength = 24;
  const auto model = models::random_model(config_of(GetParam()), {});
  for (const int kv_bits : {16, 8}) {
    if (kv_bits < 16 && models::has_latents(GetParam())) {
      continue;  // Their rows are not quantized.
    }
    const auto request = [&](Ids prompt, int max_tokens) {
      SequenceRequest result = request_of(std::move(prompt), max_tokens);
      result.kv_bits = kv_bits;
      vary_options(result, 3);
      return result;
    };
    const Ids prompt{3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9};
    const Outcome plain = run_alone(*model, request(prompt, kLength));
    ScriptedDrafter::Log log;
    const auto drafters = scripted({plain.end.context}, every_fifth_is_wrong, log);
    for (int end = 1; end < 12; ++end) {
      SCOPED_TRACE(end);
      Outcome first = run_drafted(*model, request(prompt, kLength), drafters(), end);
      const auto count = static_cast<std::size_t>(end);
      ASSERT_EQ(first.tokens, Ids(plain.tokens.begin(), plain.tokens.begin() + end));
      SequenceRequest next = request(first.end.context, kLength - end);
      next.cache = std::move(first.end.cache);
      const Outcome rest = run_drafted(*model, std::move(next), drafters(), -1);
      EXPECT_EQ(rest.tokens, Ids(plain.tokens.begin() + end, plain.tokens.end()));
      for (std::size_t i = 0; i < rest.details.size(); ++i) {
        EXPECT_EQ(rest.details[i].logprob, plain.details.at(count + i).logprob);
      }
    }
  }
}

TEST_P(Families, AContextThatFillsInARoundEndsAsWithoutDrafts) {
  Json config = config_of(GetParam());
  config["max_position_embeddings"] = 21;
  const auto model = models::random_model(config, {});
  for (std::size_t prompt = 9; prompt < 17; ++prompt) {
    SCOPED_TRACE(prompt);
    const Ids ids(prompt, 7);
    const Outcome plain = run_alone(*model, request_of(ids, 50));
    ScriptedDrafter::Log log;
    const auto drafters = scripted({plain.end.context}, every_fifth_is_wrong, log);
    expect_same(run_drafted(*model, request_of(ids, 50), drafters(), -1), plain);
  }
}

// Counts what a round asks of a model.
class Observed final : public models::Model {
 public:
  explicit Observed(const models::Model& model) : model_(model) {}

  const models::ModelInfo& info() const override { return model_.info(); }

  mx::array forward(const mx::array& ids, nn::ForwardContext& context) const override {
    passes.push_back(ids.shape(0));
    return model_.forward(ids, context);
  }

  // What the pass gives is not computed yet: the logits are waited for, and nothing before.
  mx::array unembed(const mx::array& hidden, const nn::RowContext& adapters) const override {
    EXPECT_EQ(hidden.status(), mx::array::Status::unscheduled);
    head_rows.push_back(hidden.shape(0));
    return model_.unembed(hidden, adapters);
  }

  mx::array embed(const mx::array& ids) const override { return model_.embed(ids); }

  mx::array head_products(const mx::array& hidden) const override {
    return model_.head_products(hidden);
  }

  const std::vector<nn::Module>& modules() const override { return model_.modules(); }

  cache::SequenceCache make_cache(const models::CacheOptions& options) const override {
    return model_.make_cache(options);
  }

  std::size_t cache_bytes(std::int64_t depth, int kv_bits) const override {
    return model_.cache_bytes(depth, kv_bits);
  }

  mutable std::vector<int> passes;  // Their rows, here and below.
  mutable std::vector<int> head_rows;

 private:
  const models::Model& model_;
};

TEST_P(Families, ARoundIsOnePassAndOneWaitWithARowOfTheHeadForEachToken) {
  const auto model = models::random_model(config_of(GetParam()), {});
  const Ids prompt{3, 1, 4, 1, 5};
  const Outcome plain = run_alone(*model, request_of(prompt, 25));
  const Observed observed(*model);
  ScriptedDrafter::Log log;
  const auto drafters = scripted({plain.end.context}, [](std::size_t) { return false; }, log);
  const Outcome outcome = run_drafted(observed, request_of(prompt, 25), drafters(), -1);
  EXPECT_EQ(outcome.tokens, plain.tokens);
  // A token with the prompt, then three rounds of seven drafted tokens.
  EXPECT_EQ(outcome.end.speculation.rounds, 3);
  EXPECT_EQ(observed.passes, (std::vector<int>{5, 8, 8, 8}));
  EXPECT_EQ(observed.head_rows, (std::vector<int>{1, 8, 8, 8}));
}

// A model whose head gives nothing but NaN.
class BrokenModel final : public saker::testing::FakeModel {
 public:
  BrokenModel() : FakeModel({.vocab_size = 50}) {}

  mx::array unembed(const mx::array& hidden, const nn::RowContext& /*adapters*/) const override {
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
  BatchGenerator generator(broken, {}, nullptr, draft_model(*model)());
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
