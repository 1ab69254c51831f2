// SPDX-License-Identifier: Apache-2.0
// Gemma 4's assistants in the token loop: answers are those of plain decoding, whatever the
// assistant says, and it drafts what its reference drafts.
#include "saker/generate/drafters/assistant.h"

#include "saker/generate/batch_generator.h"
#include "saker/load/checkpoint.h"
#include "saker/load/draft.h"

#include "tests/generate/draft_runs.h"
#include "tests/generate/reference_rounds.h"
#include "tests/models/random_assistant.h"
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace saker::generate {
namespace {

Drafters assistant_of(const models::AssistantDraft& assistant, const models::Model& target) {
  return drafters_of(DrafterKind::kMtp, std::make_unique<Assistant>(assistant, target));
}

TEST(Assistant, AnswersAreThoseWithoutDrafts) {
  for (const auto kind : {kernels::WeightKind::kFloat32, kernels::WeightKind::kBFloat16}) {
    const auto target = models::random_model(target_config("gemma4"), {.format = {.kind = kind}});
    for (const bool grouped : {false, true}) {
      const auto assistant =
          models::random_assistant(models::small_assistant_config(grouped), target->info());
      for (const int kv_bits : {16, 8}) {
        SCOPED_TRACE("kv_bits " + std::to_string(kv_bits));
        const auto counts =
            expect_plain_answers(*target, assistant_of(*assistant, *target), requests_of(kv_bits));
        EXPECT_GT(counts.drafted, 100);
      }
    }
  }
}

TEST(Assistant, AnswersStayInABoundedCache) {
  const auto target = models::random_model(target_config("gemma4"), {});
  const auto assistant = models::random_assistant(models::small_assistant_config(), target->info());
  auto requests = requests_of(16);
  for (SequenceRequest& request : requests) {
    request.max_kv_size = 20;
  }
  const auto counts = expect_plain_answers(*target, assistant_of(*assistant, *target), requests);
  EXPECT_GT(counts.drafted, 100);
}

TEST(Assistant, AnswersAreThoseWithoutDraftsOverEveryCacheAtEveryDepth) {
  const auto target = models::random_model(target_config("gemma4"), {});
  const auto assistant = models::random_assistant(models::small_assistant_config(), target->info());
  expect_plain_answers_over_caches(*target, [&] { return assistant_of(*assistant, *target); });
}

TEST(Assistant, AnAssistantWithoutNumbersIsLeftAside) {
  const auto target = models::random_model(target_config("gemma4"), {});
  const Json config = models::small_assistant_config();
  auto tensors = models::random_assistant_tensors(config);
  tensors["model.norm.weight"] =
      nn::float_tensor({24}, std::vector<float>(24, std::numeric_limits<float>::quiet_NaN()));
  const models::AssistantDraft broken(
      models::read_assistant_config(config), target->info(), nn::Weights(tensors, {})
  );
  const auto counts = expect_plain_answers(*target, assistant_of(broken, *target), requests_of(16));
  EXPECT_EQ(counts.drafted, 0);
}

TEST(Assistant, DraftsAfterRowsThatAnEarlierPromptLeft) {
  const auto target = models::random_model(target_config("gemma4"), {});
  const auto assistant = models::random_assistant(models::small_assistant_config(), target->info());
  expect_drafts_after_known_rows(*target, [&] { return assistant_of(*assistant, *target); });
}

TEST(Assistant, ACancelledAnswerLeavesTheOthersAsTheyAre) {
  const auto target = models::random_model(target_config("gemma4"), {});
  const auto assistant = models::random_assistant(models::small_assistant_config(), target->info());
  expect_cancelling_leaves_the_rest(*target, assistant_of(*assistant, *target));
}

class AssistantPairs : public ::testing::TestWithParam<const char*> {};

TEST_P(AssistantPairs, DraftAndAcceptAsTheReferenceDoes) {
  const auto folder = std::filesystem::path(SAKER_SOURCE_DIR) / "tests/golden/assistant";
  const auto target = load::load_checkpoint(folder / "target").model;
  const auto assistant = load::load_draft(folder / GetParam(), target->info()).assistant;
  const auto reference = read_reference_rounds(folder / GetParam() / "golden.safetensors");
  const auto whole = expect_reference_rounds(
      *target, DrafterKind::kMtp, std::make_unique<Assistant>(*assistant, *target), reference
  );
  EXPECT_EQ(whole, reference.contexts.size());
}

INSTANTIATE_TEST_SUITE_P(
    Assistant,
    AssistantPairs,
    ::testing::Values("plain", "groups"),
    [](const auto& test) { return std::string(test.param); }
);

}  // namespace
}  // namespace saker::generate
