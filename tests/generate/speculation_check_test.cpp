// SPDX-License-Identifier: Apache-2.0
// Rounds that are compared with plain decoding while they run: equal for every kind of layer and
// cache, and a model whose bits depend on the number of rows is caught.
#include "saker/base/error.h"
#include "saker/generate/batch_generator.h"

#include "tests/generate/draft_runs.h"
#include "tests/generate/runs.h"
#include "tests/support/expect_error.h"
#include "tests/support/fake_model.h"
#include "tests/support/scripted_drafter.h"
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

namespace saker::generate {
namespace {

using saker::testing::FakeModel;
using saker::testing::ScriptedDrafter;

// Plain answers are drafted with every fifth token wrong; each pass is compared.
std::vector<Outcome> run_compared(
    const models::Model& model, const std::vector<SequenceRequest>& requests
) {
  std::vector<Ids> scripts;
  for (const SequenceRequest& request : requests) {
    scripts.push_back(run_alone(model, copy_of(request)).end.context);
  }
  ScriptedDrafter::Log log;
  BatchGenerator generator(
      model,
      {.prefill_step = 16, .max_batch = 4},
      nullptr,
      drafters_of(
          DrafterKind::kDraftModel,
          std::make_unique<ScriptedDrafter>(
              std::move(scripts), [](std::size_t place) { return place % 5 == 0; }, log
          )
      )
  );
  std::vector<Outcome> outcomes(requests.size());
  for (std::size_t i = 0; i < requests.size(); ++i) {
    SequenceRequest request = copy_of(requests[i]);
    request.speculation = {.drafter = DrafterKind::kDraftModel, .depth = 4, .check = true};
    generator.add(std::move(request), std::make_unique<Recorder>(outcomes[i]));
  }
  while (!generator.idle()) {
    generator.step();
  }
  return outcomes;
}

// Adds the last bit to a logit of each row after the first of a pass.
class OneBitOff final : public FakeModel {
 public:
  mx::array unembed(const mx::array& hidden, const nn::RowContext& adapters) const override {
    mx::array logits = mx::contiguous(FakeModel::unembed(hidden, adapters));
    mx::eval(logits);
    const auto size = static_cast<std::size_t>(info().vocab_size);
    for (std::size_t row = 1; row < static_cast<std::size_t>(hidden.shape(0)); ++row) {
      float& logit = logits.data<float>()[row * size + 7];
      logit = std::nextafter(logit, std::numeric_limits<float>::infinity());
    }
    return logits;
  }
};

TEST(SpeculationCheck, RoundsEqualPlainDecoding) {
  for (const std::string_view type :
       {"llama",
        "gemma3_text",
        "gemma4_text",
        "qwen3_5",
        "lfm2",
        "granitemoehybrid",
        "nemotron_h",
        "kimi_linear",
        "bailing_hybrid"}) {
    const auto model = models::random_model(target_config(type), {});
    for (const int kv_bits : {16, 4}) {
      if (kv_bits < 16 && models::has_latents(type)) {
        continue;  // Latents are not quantized.
      }
      SCOPED_TRACE(std::string(type) + ", " + std::to_string(kv_bits) + " bits");
      std::vector<SequenceRequest> requests = requests_of(kv_bits);
      requests.resize(3);
      const std::vector<Outcome> outcomes = run_compared(*model, requests);
      for (std::size_t i = 0; i < outcomes.size(); ++i) {
        expect_same(outcomes[i], run_alone(*model, copy_of(requests[i])));
        const SpeculationCounts& counts = outcomes[i].end.speculation;
        EXPECT_GT(counts.drafted, 0);
        EXPECT_EQ(counts.compared, counts.drafted + counts.rounds);
      }
    }
  }
}

TEST(SpeculationCheck, ADifferingBitEndsTheAnswer) {
  const OneBitOff model;
  std::vector<SequenceRequest> requests;
  requests.push_back(request_of({3, 1, 4, 1, 5}, 30));
  const Outcome outcome = std::move(run_compared(model, requests).front());
  ASSERT_EQ(outcome.end.reason, EndReason::kFailed);
  saker::testing::expect_error(
      ErrorCode::kInternal,
      {"row 1 of a pass with 4 draft tokens differs from plain decoding", "token 7"},
      [&] { std::rethrow_exception(outcome.end.error); }
  );
}

}  // namespace
}  // namespace saker::generate
