// SPDX-License-Identifier: Apache-2.0
// EAGLE-3 heads in the token loop: answers are those of plain decoding, whatever the head says, on
// every architecture, and it drafts what its reference drafts.
#include "saker/generate/drafters/eagle3.h"

#include "saker/generate/batch_generator.h"
#include "saker/generate/pass.h"
#include "saker/load/checkpoint.h"
#include "saker/load/draft.h"

#include "tests/generate/draft_runs.h"
#include "tests/generate/joint_draws.h"
#include "tests/generate/reference_rounds.h"
#include "tests/models/random_eagle3.h"
#include "tests/support/expect_error.h"
#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace saker::generate {
namespace {

Drafters eagle3_of(
    const models::Eagle3Head& head,
    const models::Model& target,
    std::size_t kept_bytes = Eagle3::kKeptBytes
) {
  return drafters_of(DrafterKind::kEagle3, std::make_unique<Eagle3>(head, target, kept_bytes));
}

class Eagle3Architectures : public ::testing::TestWithParam<std::string_view> {};

TEST_P(Eagle3Architectures, AnswerAsWithoutDrafts) {
  const auto target = models::random_model(target_config(GetParam()), {});
  for (const Json& config : {models::small_eagle3_config(), models::small_speculators_config()}) {
    const auto head = models::random_eagle3(config, target->info());
    const auto counts = expect_plain_answers(*target, eagle3_of(*head, *target), requests_of(16));
    EXPECT_GT(counts.drafted, 100);
  }
}

INSTANTIATE_TEST_SUITE_P(
    All,
    Eagle3Architectures,
    ::testing::ValuesIn(models::supported_architectures()),
    [](const auto& test) { return std::string(test.param); }
);

TEST(Eagle3, AnswersInOtherFormatsAndCachesAreThoseWithoutDrafts) {
  const Json config = target_config("qwen3");
  for (const auto kind : {kernels::WeightKind::kFloat32, kernels::WeightKind::kBFloat16}) {
    const auto target = models::random_model(config, {.format = {.kind = kind}});
    const auto head =
        models::random_eagle3(models::small_eagle3_config(), target->info(), 0, {.kind = kind});
    for (const int kv_bits : {16, 8}) {
      SCOPED_TRACE("kv_bits " + std::to_string(kv_bits));
      const auto counts =
          expect_plain_answers(*target, eagle3_of(*head, *target), requests_of(kv_bits));
      EXPECT_GT(counts.drafted, 100);
    }
  }
}

TEST(Eagle3, AnswersStayWhereRowsAreTakenUpOrDropped) {
  const auto target = models::random_model(target_config("qwen3"), {});
  const auto head = models::random_eagle3(models::small_eagle3_config(), target->info());
  constexpr std::size_t kRowBytes = std::size_t{3} * 32 * sizeof(float);
  for (const std::size_t rows : {0, 1, 5, 20}) {
    const auto counts =
        expect_plain_answers(*target, eagle3_of(*head, *target, rows * kRowBytes), requests_of(16));
    EXPECT_GT(counts.drafted, 100);
  }
}

TEST(Eagle3, AnswerAsWithoutDraftsOverEveryCacheAtEveryDepth) {
  const auto target = models::random_model(target_config("gemma3"), {});
  const auto head = models::random_eagle3(models::small_speculators_config(), target->info());
  expect_plain_answers_over_caches(*target, [&] { return eagle3_of(*head, *target); });
}

// A head that learned what its target says drafts and accepts, round by round, what the reference
// does.
class Eagle3Pairs : public ::testing::TestWithParam<const char*> {};

TEST_P(Eagle3Pairs, DraftAndAcceptAsTheReferenceDoes) {
  const auto dir = std::filesystem::path(SAKER_SOURCE_DIR) / "tests/golden/eagle3" / GetParam();
  const auto target = load::load_checkpoint(dir / "target").model;
  const auto draft = load::load_draft(dir, target->info());
  const auto reference = read_reference_rounds(dir / "golden.safetensors");
  // Rows of the prompt are taken up at the first proposal, or while it runs.
  for (const std::size_t pending_hidden : {1000, 5}) {
    auto drafter =
        std::make_unique<Eagle3>(*draft.eagle3, *target, pending_hidden * 3 * 32 * sizeof(float));
    const auto whole =
        expect_reference_rounds(*target, DrafterKind::kEagle3, std::move(drafter), reference, 4);
    EXPECT_EQ(whole, reference.contexts.size());
  }
}

INSTANTIATE_TEST_SUITE_P(
    All,
    Eagle3Pairs,
    ::testing::ValuesIn(models::kEagle3Goldens),
    [](const auto& test) { return std::string(test.param); }
);

// The target's logits for the last token of a context, run alone.
std::vector<float> logits_alone(const models::Model& target, const Ids& context) {
  cache::SequenceCache cache = target.make_cache({});
  const PassSpan span{.cache = &cache, .tokens = context, .logit_rows = 1};
  RowLogits logits = run_rows(target, {&span, 1});
  const auto row = logits.row(0);
  return {row.begin(), row.end()};
}

// Whole rounds over a real target and a head that knows a part of its tokens.
class Eagle3Rounds : public ::testing::TestWithParam<Acceptance> {};

TEST_P(Eagle3Rounds, GiveTheTargetsJointDistribution) {
  Json config = models::small_config("qwen3");
  config["vocab_size"] = kDrawnVocabulary;
  config["num_hidden_layers"] = 1;
  const auto target = models::random_model(config, {});
  Json own = models::small_eagle3_config();
  own["vocab_size"] = kDrawnVocabulary;
  own["draft_vocab_size"] = kDrawnVocabulary - 2;
  const auto head = models::eagle3_of(own, target->info(), models::random_eagle3_tensors(own, 3));
  const NextLogits logits_of = [&](const Ids& context) { return logits_alone(*target, context); };
  BatchGenerator generator(
      *target, {.prefill_step = 4096, .max_batch = kDrawnBatch}, nullptr, eagle3_of(*head, *target)
  );
  constexpr int kCost = 8;  // Over that of a fake model, whose draws are counted.
  expect_joint_distribution(
      generator, logits_of, {3, 1}, {DrafterKind::kEagle3, 2, GetParam()}, draws() / kCost
  );
}

INSTANTIATE_TEST_SUITE_P(
    Acceptance,
    Eagle3Rounds,
    ::testing::Values(Acceptance::kCoupled, Acceptance::kRejection),
    [](const auto& test) {
      return std::string(test.param == Acceptance::kCoupled ? "coupled" : "rejection");
    }
);

TEST(Eagle3, RefusesAnotherTarget) {
  const auto target = models::random_model(models::small_config("qwen3"), {});
  const auto head = models::random_eagle3(models::small_eagle3_config(), target->info());
  Json config = models::small_config("qwen3");
  config["vocab_size"] = 60;
  const auto other = models::random_model(config, {});
  testing::expect_error(ErrorCode::kInvalidArgument, {"vocab_size", "50", "60"}, [&] {
    const Eagle3 drafter(*head, *other);
  });
}

TEST(Eagle3, AHeadWithoutNumbersIsLeftAside) {
  const auto target = models::random_model(target_config("qwen3"), {});
  const Json config = models::small_eagle3_config();
  auto tensors = models::random_eagle3_tensors(config);
  tensors["norm.weight"] =
      nn::float_tensor({32}, std::vector<float>(32, std::numeric_limits<float>::quiet_NaN()));
  const auto broken = models::eagle3_of(config, target->info(), tensors);
  const auto counts = expect_plain_answers(*target, eagle3_of(*broken, *target), requests_of(16));
  EXPECT_EQ(counts.drafted, 0);
}

TEST(Eagle3, DraftsAfterRowsThatAnEarlierPromptLeft) {
  const auto target = models::random_model(target_config("qwen3_5"), {});
  const auto head = models::random_eagle3(models::small_eagle3_config(), target->info());
  expect_drafts_after_known_rows(*target, [&] { return eagle3_of(*head, *target); });
}

TEST(Eagle3, ACancelledAnswerLeavesTheOthersAsTheyAre) {
  const auto target = models::random_model(target_config("qwen3"), {});
  const auto head = models::random_eagle3(models::small_eagle3_config(), target->info());
  expect_cancelling_leaves_the_rest(*target, eagle3_of(*head, *target));
}

}  // namespace
}  // namespace saker::generate
