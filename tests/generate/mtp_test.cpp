// SPDX-License-Identifier: Apache-2.0
// MTP heads in the token loop: answers are those of plain decoding, whatever the head says, and it
// drafts what its reference drafts.
#include "saker/generate/drafters/mtp.h"

#include "saker/base/error.h"
#include "saker/generate/batch_generator.h"
#include "saker/generate/pass.h"
#include "saker/load/checkpoint.h"

#include "tests/generate/draft_runs.h"
#include "tests/generate/joint_draws.h"
#include "tests/generate/reference_rounds.h"
#include "tests/models/random_mtp.h"
#include "tests/support/expect_error.h"
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace saker::generate {
namespace {

Drafters mtp_of(
    const models::MtpHead& head,
    const models::Model& target,
    std::size_t kept_bytes = Mtp::kKeptBytes
) {
  return drafters_of(DrafterKind::kMtp, std::make_unique<Mtp>(head, target, kept_bytes));
}

class MtpFamilies : public ::testing::TestWithParam<std::string_view> {};

TEST_P(MtpFamilies, AnswerAsWithoutDrafts) {
  const Json config = target_config(GetParam());
  for (const auto kind : {kernels::WeightKind::kFloat32, kernels::WeightKind::kBFloat16}) {
    const auto target = models::random_model(config, {.format = {.kind = kind}});
    const auto head = models::random_mtp(config, {.format = {.kind = kind}});
    for (const int kv_bits : {16, 8}) {
      if (kv_bits < 16 && models::has_latents(GetParam())) {
        continue;  // Latents are not quantized.
      }
      SCOPED_TRACE("kv_bits " + std::to_string(kv_bits));
      const auto counts =
          expect_plain_answers(*target, mtp_of(*head, *target), requests_of(kv_bits));
      EXPECT_GT(counts.drafted, 100);
    }
  }
}

TEST_P(MtpFamilies, AnswersStayWhereRowsAreTakenUpOrDropped) {
  const Json config = target_config(GetParam());
  const auto target = models::random_model(config, {});
  const auto head = models::random_mtp(config);
  constexpr std::size_t kRowBytes = 32 * sizeof(float);
  for (const std::size_t rows : {0, 1, 5, 20}) {
    const auto counts =
        expect_plain_answers(*target, mtp_of(*head, *target, rows * kRowBytes), requests_of(16));
    EXPECT_GT(counts.drafted, 100);
  }
}

TEST_P(MtpFamilies, AnswerAsWithoutDraftsOverEveryCacheAtEveryDepth) {
  if (models::has_latents(GetParam())) {
    GTEST_SKIP() << "latents are not quantized";
  }
  const Json config = target_config(GetParam());
  const auto target = models::random_model(config, {});
  const auto head = models::random_mtp(config);
  expect_plain_answers_over_caches(*target, [&] { return mtp_of(*head, *target); });
}

INSTANTIATE_TEST_SUITE_P(
    Mtp,
    MtpFamilies,
    ::testing::Values("deepseek_v3", "glm4_moe", "qwen3", "qwen3_5"),
    [](const auto& test) { return std::string(test.param); }
);

// A head that learned what its target says drafts and accepts, round by round, what the reference
// does.
class MtpPairs : public ::testing::TestWithParam<const char*> {};

TEST_P(MtpPairs, DraftAndAcceptAsTheReferenceDoes) {
  const auto dir = std::filesystem::path(SAKER_SOURCE_DIR) / "tests/golden/mtp" / GetParam();
  const auto loaded = load::load_checkpoint(dir, {}, true);
  const auto reference = read_reference_rounds(dir / "golden.safetensors");
  // Rows of the prompt are taken up at the first proposal, or while it runs.
  for (const std::size_t pending_hidden : {1000, 5}) {
    auto drafter =
        std::make_unique<Mtp>(*loaded.mtp, *loaded.model, pending_hidden * 32 * sizeof(float));
    const auto whole =
        expect_reference_rounds(*loaded.model, DrafterKind::kMtp, std::move(drafter), reference, 4);
    EXPECT_EQ(whole, reference.contexts.size());
  }
}

INSTANTIATE_TEST_SUITE_P(
    Mtp,
    MtpPairs,
    ::testing::Values("deepseek_v3", "glm4_moe", "qwen3", "qwen3_5"),
    [](const auto& test) { return std::string(test.param); }
);

// What the target gives for the last token of a context, run alone.
std::vector<float> last_logits(const models::Model& target, const Ids& context) {
  cache::SequenceCache cache = target.make_cache({});
  const PassSpan span{.cache = &cache, .tokens = context, .logit_rows = 1};
  RowLogits logits = run_rows(target, {&span, 1});
  const auto row = logits.row(0);
  return {row.begin(), row.end()};
}

constexpr int kRealModelCost = 8;  // Over that of a fake one, whose draws are counted.

// Whole rounds over a real target and its head, whose own distribution is another one.
class MtpRounds : public ::testing::TestWithParam<Acceptance> {};

TEST_P(MtpRounds, GiveTheTargetsJointDistribution) {
  Json config = models::small_config("qwen3");
  config["vocab_size"] = kDrawnVocabulary;
  config["num_hidden_layers"] = 1;
  const auto target = models::random_model(config, {});
  const auto head = models::random_mtp(config, {.seed = 3});
  const NextLogits logits_of = [&](const Ids& context) { return last_logits(*target, context); };
  BatchGenerator generator(
      *target, {.prefill_step = 4096, .max_batch = kDrawnBatch}, nullptr, mtp_of(*head, *target)
  );
  expect_joint_distribution(
      generator, logits_of, {3, 1}, {DrafterKind::kMtp, 2, GetParam()}, draws() / kRealModelCost
  );
}

INSTANTIATE_TEST_SUITE_P(
    Acceptance,
    MtpRounds,
    ::testing::Values(Acceptance::kCoupled, Acceptance::kRejection),
    [](const auto& test) {
      return std::string(test.param == Acceptance::kCoupled ? "coupled" : "rejection");
    }
);

TEST(Mtp, RefusesAnotherTarget) {
  const auto head = models::random_mtp(models::small_config("qwen3"));
  Json config = models::small_config("qwen3");
  config["vocab_size"] = 60;
  const auto target = models::random_model(config, {});
  testing::expect_error(ErrorCode::kInvalidArgument, {"vocab_size", "50", "60"}, [&] {
    const Mtp drafter(*head, *target);
  });
}

TEST(Mtp, AHeadWithoutNumbersIsLeftAside) {
  const Json config = target_config("qwen3_5");
  const auto target = models::random_model(config, {});
  auto tensors = models::random_mtp_tensors(config);
  tensors["mtp.norm.weight"] =
      nn::float_tensor({32}, std::vector<float>(32, std::numeric_limits<float>::quiet_NaN()));
  const auto broken = models::make_mtp_head(config, nn::Weights(tensors, {}));
  const auto counts = expect_plain_answers(*target, mtp_of(*broken, *target), requests_of(16));
  EXPECT_EQ(counts.drafted, 0);
}

TEST(Mtp, DraftsAfterRowsThatAnEarlierPromptLeft) {
  const Json config = target_config("qwen3_5");
  const auto target = models::random_model(config, {});
  const auto head = models::random_mtp(config);
  expect_drafts_after_known_rows(*target, [&] { return mtp_of(*head, *target); });
}

TEST(Mtp, ACancelledAnswerLeavesTheOthersAsTheyAre) {
  const Json config = target_config("qwen3");
  const auto target = models::random_model(config, {});
  const auto head = models::random_mtp(config);
  expect_cancelling_leaves_the_rest(*target, mtp_of(*head, *target));
}

}  // namespace
}  // namespace saker::generate
