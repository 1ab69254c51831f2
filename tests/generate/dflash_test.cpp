// SPDX-License-Identifier: Apache-2.0
// DFlash drafts in the token loop: answers are those of plain decoding, whatever the draft says,
// and rows that are captured are kept, taken up or dropped as promised.
#include "saker/generate/drafters/dflash.h"

#include "saker/base/error.h"
#include "saker/generate/batch_generator.h"
#include "saker/load/checkpoint.h"
#include "saker/load/draft.h"

#include "tests/generate/draft_runs.h"
#include "tests/generate/reference_rounds.h"
#include "tests/models/random_dflash.h"
#include "tests/support/chi_square.h"
#include "tests/support/expect_error.h"
#include <gtest/gtest.h>

#include <cmath>
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

Drafters dflash_of(
    const models::DflashDraft& draft,
    const models::Model& target,
    std::size_t kept_bytes = Dflash::kKeptBytes
) {
  return drafters_of(DrafterKind::kDflash, std::make_unique<Dflash>(draft, target, kept_bytes));
}

class DflashFamilies : public ::testing::TestWithParam<std::string_view> {};

TEST_P(DflashFamilies, AnswerAsWithoutDrafts) {
  const auto target = models::random_model(target_config(GetParam()), {});
  for (const bool second : {false, true}) {
    Json config = models::small_dflash_config(second);
    config["num_target_layers"] = target->info().layer_count;
    const auto draft = models::random_dflash(config);
    for (const int kv_bits : {16, 8}) {
      if (kv_bits < 16 && models::has_latents(GetParam())) {
        continue;  // Their rows are not quantized.
      }
      SCOPED_TRACE("kv_bits " + std::to_string(kv_bits));
      const auto counts =
          expect_plain_answers(*target, dflash_of(*draft, *target), requests_of(kv_bits));
      EXPECT_GT(counts.drafted, 100);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Dflash,
    DflashFamilies,
    ::testing::ValuesIn(models::supported_architectures()),
    [](const auto& test) { return std::string(test.param); }
);

// Of the token after a prompt.
std::vector<double> next_probabilities(const models::Model& target, const Ids& prompt) {
  SequenceRequest request = request_of(prompt, 1);
  request.logprobs = target.info().vocab_size;
  std::vector<double> probabilities(static_cast<std::size_t>(request.logprobs), 0.0);
  const Outcome outcome = run_alone(target, std::move(request));
  for (const auto& [id, log_prob] : outcome.details.at(0).top) {
    probabilities[static_cast<std::size_t>(id)] = std::exp(log_prob);
  }
  return probabilities;
}

TEST(Dflash, RejectionGivesTheTargetsDistribution) {
  const auto target = models::random_model(target_config("llama"), {});
  const Ids prompt = {3, 1, 4, 1, 5};
  const std::vector<double> first = next_probabilities(*target, prompt);
  std::vector<double> second(first.size(), 0.0);
  for (std::size_t id = 0; id < first.size(); ++id) {
    const auto after = next_probabilities(*target, {3, 1, 4, 1, 5, static_cast<std::int32_t>(id)});
    for (std::size_t next = 0; next < after.size(); ++next) {
      second[next] += first[id] * after[next];
    }
  }
  for (const bool later_version : {false, true}) {
    const auto draft = models::random_dflash(models::small_dflash_config(later_version));
    BatchGenerator generator(
        *target, {.prefill_step = 1024, .max_batch = 128}, nullptr, dflash_of(*draft, *target)
    );
    std::vector<Outcome> outcomes(8'000);
    for (std::size_t seed = 0; seed < outcomes.size(); ++seed) {
      SequenceRequest request = request_of(prompt, 3);
      request.sampling.temperature = 1.0;
      request.sampling.seed = seed;
      request.speculation = {DrafterKind::kDflash, 2, Acceptance::kRejection};
      generator.add(std::move(request), std::make_unique<Recorder>(outcomes[seed]));
    }
    while (!generator.idle()) {
      generator.step();
    }
    std::vector<int> counts(second.size(), 0);
    int drafted = 0;
    for (const Outcome& outcome : outcomes) {
      ++counts[static_cast<std::size_t>(outcome.tokens.at(1))];
      drafted += outcome.end.speculation.drafted;
    }
    EXPECT_EQ(drafted, 8'000);
    EXPECT_GT(saker::testing::chi_square_p(counts, second), 1e-3);
  }
}

TEST(Dflash, AnswersStayWhereRowsAreTakenUpOrDropped) {
  const auto target = models::random_model(target_config("qwen3_5"), {});
  for (const bool slides : {false, true}) {
    Json config = models::small_dflash_config();
    if (slides) {
      config["layer_types"] = {"sliding_attention", "sliding_attention"};
    }
    const auto draft = models::random_dflash(config);
    constexpr std::size_t kRowBytes = 2 * 32 * sizeof(float);
    for (const std::size_t rows : {0, 1, 5, 20}) {
      auto drafters = dflash_of(*draft, *target, rows * kRowBytes);
      const auto counts = expect_plain_answers(*target, std::move(drafters), requests_of(16));
      EXPECT_GT(counts.drafted, 100);
    }
  }
}

TEST(Dflash, RefusesAnotherTarget) {
  const auto draft = models::random_dflash(models::small_dflash_config());
  Json config = models::small_config("qwen3");
  config["vocab_size"] = 60;
  const auto target = models::random_model(config, {});
  testing::expect_error(ErrorCode::kInvalidArgument, {"vocab_size", "50", "60"}, [&] {
    const Dflash drafter(*draft, *target);
  });
}

TEST(Dflash, ADraftWithoutNumbersIsLeftAside) {
  const auto target = models::random_model(target_config("llama"), {});
  for (const bool second : {false, true}) {
    const Json config = models::small_dflash_config(second);
    auto tensors = models::random_dflash_tensors(config, 0);
    tensors["norm.weight"] =
        nn::float_tensor({32}, std::vector<float>(32, std::numeric_limits<float>::quiet_NaN()));
    const models::DflashDraft broken(
        models::read_dflash_config(config), nn::Weights(models::dflash_tensors(tensors), {})
    );
    const auto counts = expect_plain_answers(*target, dflash_of(broken, *target), requests_of(16));
    EXPECT_EQ(counts.drafted, 0);
  }
}

TEST(Dflash, DraftsAfterRowsThatAnEarlierPromptLeft) {
  const auto target = models::random_model(target_config("gemma3"), {});
  const auto draft = models::random_dflash(models::small_dflash_config());
  expect_drafts_after_known_rows(*target, [&] { return dflash_of(*draft, *target); });
}

TEST(Dflash, ACancelledAnswerLeavesTheOthersAsTheyAre) {
  const auto target = models::random_model(target_config("gemma2"), {});
  const auto draft = models::random_dflash(models::small_dflash_config());
  expect_cancelling_leaves_the_rest(*target, dflash_of(*draft, *target));
}

// A draft that learned what its target says drafts and accepts, round by round, what the package
// that it comes from does, and what `dflash-mlx` does.
class DflashPairs : public ::testing::TestWithParam<models::DflashGoldenFile> {};

TEST_P(DflashPairs, DraftAndAcceptAsTheReferenceDoes) {
  const auto golden = std::filesystem::path(SAKER_SOURCE_DIR) / "tests/golden/dflash";
  const auto dir = golden / GetParam().folder;
  const auto target = load::load_checkpoint(golden / "target").model;
  const auto draft = load::load_draft(dir, target->info()).dflash;
  ReferenceRounds reference = read_reference_rounds(dir / GetParam().file);
  for (std::int32_t& context : reference.contexts) {
    context += 1;  // The block's first token is one of them.
  }
  const auto whole = expect_reference_rounds(
      *target, DrafterKind::kDflash, std::make_unique<Dflash>(*draft, *target), reference
  );
  EXPECT_GT(whole, 4U);
}

INSTANTIATE_TEST_SUITE_P(
    Dflash,
    DflashPairs,
    ::testing::ValuesIn(models::kDflashGoldens),
    [](const auto& test) { return std::string(test.param.name); }
);

}  // namespace
}  // namespace saker::generate
