// SPDX-License-Identifier: Apache-2.0
// DFlash drafts in the token loop: answers are those of plain decoding, whatever the draft says,
// and rows that are tapped are kept, taken up or dropped as promised.
#include "saker/generate/drafters/dflash.h"

#include "saker/base/error.h"
#include "saker/cache/prefix_cache.h"
#include "saker/generate/batch_generator.h"
#include "saker/load/checkpoint.h"
#include "saker/load/draft.h"

#include "tests/generate/runs.h"
#include "tests/models/random_dflash.h"
#include "tests/support/chi_square.h"
#include "tests/support/expect_error.h"
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace saker::generate {
namespace {

constexpr std::array<int, 8> kDepths = {1, 2, 4, 7, 16, kAutoDepth, 7, 4};

Json target_config(std::string_view model_type) {
  Json config = models::small_config(model_type);
  config["sliding_window"] = 11;
  config["sliding_window_pattern"] = 2;
  config["use_sliding_window"] = true;
  config["max_window_layers"] = 1;
  return config;
}

std::vector<SequenceRequest> requests_of(int kv_bits) {
  std::vector<SequenceRequest> requests;
  for (std::size_t i = 0; i < kDepths.size(); ++i) {
    SequenceRequest& request = requests.emplace_back();
    // The first prompt is one token.
    for (std::size_t j = 0; j < 1 + 9 * i; ++j) {
      request.prompt.push_back(static_cast<std::int32_t>((j * 7 + i) % 49));
    }
    request.max_tokens = 30;
    request.kv_bits = kv_bits;
    request.stop_tokens = {49};  // The mask.
    vary_options(request, i);
  }
  return requests;
}

Drafters dflash_of(
    const models::DflashDraft& draft,
    const models::Model& target,
    std::size_t kept_bytes = Dflash::kKeptBytes
) {
  Drafters drafters;
  drafters[DrafterKind::kDflash] = std::make_unique<Dflash>(draft, target, kept_bytes);
  return drafters;
}

// Runs all requests in one batch, each with a depth of its own; how much was drafted.
SpeculationCounts expect_plain_answers(
    const models::Model& target, Drafters drafters, const std::vector<SequenceRequest>& requests
) {
  std::vector<Outcome> outcomes(requests.size());
  BatchGenerator generator(
      target, {.prefill_step = 16, .max_batch = 8}, nullptr, std::move(drafters)
  );
  for (std::size_t i = 0; i < requests.size(); ++i) {
    SequenceRequest request = copy_of(requests[i]);
    request.speculation.drafter = DrafterKind::kDflash;
    request.speculation.depth = kDepths.at(i);
    generator.add(std::move(request), std::make_unique<Recorder>(outcomes[i]));
  }
  while (!generator.idle()) {
    generator.step();
  }
  SpeculationCounts counts;
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    SCOPED_TRACE("depth " + std::to_string(kDepths.at(i)));
    expect_same(outcomes[i], run_alone(target, copy_of(requests[i])));
    counts.drafted += outcomes[i].end.speculation.drafted;
    counts.accepted += outcomes[i].end.speculation.accepted;
  }
  return counts;
}

class DflashFamilies : public ::testing::TestWithParam<std::string_view> {};

TEST_P(DflashFamilies, AnswerAsWithoutDrafts) {
  const auto target = models::random_model(target_config(GetParam()), {});
  for (const bool second : {false, true}) {
    Json config = models::small_dflash_config(second);
    config["num_target_layers"] = target->info().layer_count;
    const auto draft = models::random_dflash(config);
    for (const int kv_bits : {16, 8}) {
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
    ::testing::ValuesIn(models::supported_model_types()),
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
  cache::PrefixCacheOptions options;
  options.byte_budget = std::size_t{64} << 20;
  cache::PrefixCache prefixes(options);
  BatchGenerator generator(*target, {}, &prefixes, dflash_of(*draft, *target));
  SequenceRequest request = request_of({}, 30);
  for (int i = 0; i < 90; ++i) {
    request.prompt.push_back(i * 5 % 50);
  }
  const Outcome plain = run_alone(*target, copy_of(request));
  for (int run = 0; run < 2; ++run) {
    Outcome outcome;
    SequenceRequest again = copy_of(request);
    again.prefix_key = "key";
    again.speculation = {DrafterKind::kDflash, 5};
    generator.add(std::move(again), std::make_unique<Recorder>(outcome));
    while (!generator.idle()) {
      generator.step();
    }
    expect_same(outcome, plain);
    EXPECT_GT(outcome.end.speculation.drafted, 0);
    EXPECT_EQ(outcome.end.cached_tokens > 0, run > 0);
  }
}

TEST(Dflash, ACancelledAnswerLeavesTheOthersAsTheyAre) {
  const auto target = models::random_model(target_config("gemma2"), {});
  const auto draft = models::random_dflash(models::small_dflash_config());
  const auto requests = requests_of(16);
  std::vector<Outcome> outcomes(3);
  BatchGenerator generator(*target, {}, nullptr, dflash_of(*draft, *target));
  std::vector<std::uint64_t> ids;
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    SequenceRequest request = copy_of(requests[i + 3]);
    request.speculation = {DrafterKind::kDflash, 4};
    ids.push_back(generator.add(std::move(request), std::make_unique<Recorder>(outcomes[i])));
  }
  for (int step = 0; step < 9; ++step) {
    generator.step();
  }
  generator.cancel(ids[1]);
  while (!generator.idle()) {
    generator.step();
  }
  EXPECT_EQ(outcomes[1].end.reason, EndReason::kCancelled);
  expect_same(outcomes[0], run_alone(*target, copy_of(requests[3])));
  expect_same(outcomes[2], run_alone(*target, copy_of(requests[5])));
  // What the cancelled one has is where plain decoding goes on from.
  SequenceRequest rest = copy_of(requests[4]);
  rest.prompt = outcomes[1].end.context;
  rest.cache = std::move(outcomes[1].end.cache);
  rest.max_tokens = requests[4].max_tokens - static_cast<int>(outcomes[1].tokens.size());
  const Outcome whole = run_alone(*target, copy_of(requests[4]));
  EXPECT_EQ(run_alone(*target, std::move(rest)).end.context, whole.end.context);
}

struct Drafted {
  std::size_t context;  // Tokens before.
  Ids tokens;
};

// A drafter that keeps what it drafts.
class Watched final : public Drafter {
 public:
  Watched(const models::DflashDraft& draft, const models::Model& target, std::vector<Drafted>& log)
      : drafter_(draft, target), log_(log) {}

  int max_depth() const override { return drafter_.max_depth(); }

  std::span<const int> tap_layers() const override { return drafter_.tap_layers(); }

  std::unique_ptr<DraftState> start(const SequenceRequest& request) override {
    return drafter_.start(request);
  }

  void propose(std::span<Proposal> proposals) override {
    drafter_.propose(proposals);
    for (const Proposal& proposal : proposals) {
      log_.push_back({proposal.context.size(), proposal.tokens});
    }
  }

 private:
  Dflash drafter_;
  std::vector<Drafted>& log_;
};

// A draft that learned what its target says drafts and accepts, round by round, what the package
// that it comes from does.
class DflashPairs : public ::testing::TestWithParam<const char*> {};

TEST_P(DflashPairs, DraftAndAcceptAsTheReferenceDoes) {
  const auto golden = std::filesystem::path(SAKER_SOURCE_DIR) / "tests/golden/dflash";
  const auto dir = golden / GetParam();
  const auto target = load::load_checkpoint(golden / "target").model;
  const auto draft = load::load_draft(dir, target->info()).dflash;
  auto arrays = mx::load_safetensors((dir / "golden.safetensors").string()).first;
  const auto ints = [&](const std::string& name) {
    auto array = mx::contiguous(arrays.at(name));
    mx::eval(array);
    return Ids(array.data<std::int32_t>(), array.data<std::int32_t>() + array.size());
  };
  const Ids tokens = ints("tokens");
  const Ids contexts = ints("context");
  const Ids drafts = ints("drafts");
  const auto width = static_cast<std::size_t>(draft->config().block_size) - 1;
  // Our blocks get smaller before the end, too, by one token.
  SequenceRequest request = request_of(ints("ids"), static_cast<int>(tokens.size() + width + 1));
  request.speculation = {DrafterKind::kDflash, static_cast<int>(width)};
  std::vector<Drafted> log;
  Drafters drafters;
  drafters[DrafterKind::kDflash] = std::make_unique<Watched>(*draft, *target, log);
  Outcome outcome;
  BatchGenerator generator(*target, {}, nullptr, std::move(drafters));
  generator.add(std::move(request), std::make_unique<Recorder>(outcome));
  while (!generator.idle()) {
    generator.step();
  }
  outcome.tokens.resize(tokens.size());
  EXPECT_EQ(outcome.tokens, tokens);
  ASSERT_GE(log.size(), contexts.size());
  std::size_t whole = 0;
  for (std::size_t round = 0; round < contexts.size(); ++round) {
    // How many tokens the round before accepted shows in the context.
    EXPECT_EQ(log[round].context, static_cast<std::size_t>(contexts[round]) + 1);
    const auto first = drafts.begin() + static_cast<std::ptrdiff_t>(round * width);
    const Ids expected(first, first + static_cast<std::ptrdiff_t>(width));
    if (expected.back() >= 0) {
      EXPECT_EQ(log[round].tokens, expected) << "round " << round;
      ++whole;
    }
  }
  EXPECT_GT(whole, 4U);
}

INSTANTIATE_TEST_SUITE_P(
    Dflash,
    DflashPairs,
    ::testing::Values("legacy", "nested", "root", "second"),
    [](const auto& test) { return std::string(test.param); }
);

}  // namespace
}  // namespace saker::generate
