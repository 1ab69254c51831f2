// SPDX-License-Identifier: Apache-2.0
#include "saker/engine/scoring_views.h"

#include "saker/base/error.h"

#include <mutex>
#include <optional>
#include <utility>
#include <variant>

namespace saker::engine {

// The common state of all views of one ScoringViews.
struct ScoringView::Shared {
  Engine& engine;
  ScoreInstruments* instruments;
  ViewSlots slots;
  std::mutex mutex = {};
  std::optional<std::string> active = {};  // The id of the view in the single slot.
};

// The single slot, held by a view.
struct ScoringView::Slot {
  std::shared_ptr<Shared> shared;

  static void release(Slot* slot) {
    {
      const std::lock_guard lock(slot->shared->mutex);
      slot->shared->active.reset();
    }
    delete slot;
  }
};

ScoringView::ScoringView(std::shared_ptr<Shared> shared, View view)
    : view_(std::move(view)), shared_(std::move(shared)), slot_(nullptr, &Slot::release) {
  if (shared_->slots == ViewSlots::kAny) {
    return;
  }
  auto slot = std::make_unique<Slot>(Slot{shared_});
  const std::lock_guard lock(shared_->mutex);
  require(
      !shared_->active,
      ErrorCode::kInvalidArgument,
      "view {:?} already active; exit it before entering {:?}",
      shared_->active.value_or(""),
      id()
  );
  shared_->active = id();
  slot_.reset(slot.release());
}

ScoreResult ScoringView::score_one(ScoreRequest request) const {
  std::vector<ScoreRequest> one;
  one.push_back(std::move(request));
  std::vector<ScoreOutcome> outcomes = score(std::move(one));
  if (const Error* error = std::get_if<Error>(&outcomes.front())) {
    throw Error(*error);
  }
  return std::get<ScoreResult>(std::move(outcomes.front()));
}

double ScoringView::logprob_of(std::string prompt, std::string completion) const {
  const ScoreResult result =
      score_one(engine::logprob_of(std::move(prompt), std::move(completion)));
  require(
      !result.first_token_unscored,
      ErrorCode::kInvalidArgument,
      "the prompt has no tokens: nothing is before the completion's first one, which has no "
      "log-probability"
  );
  return result.views.front().sum;
}

ScoreResult ScoringView::rolling_logprob(std::string text) const {
  return score_one(engine::rolling_logprob(std::move(text)));
}

score::NextDistribution ScoringView::next_token_dist(std::string prompt, int top_k) const {
  require(top_k >= 1, ErrorCode::kInvalidArgument, "top_k: got {}, expected 1 or more", top_k);
  ScoreResult result = score_one(engine::next_token_dist(std::move(prompt), top_k));
  return std::move(result.views.front().next).value();
}

std::vector<ScoreOutcome> ScoringView::score(std::vector<ScoreRequest> requests) const {
  for (ScoreRequest& request : requests) {
    request.views = {view_};
  }
  return shared_->instruments == nullptr ? shared_->engine.score(requests)
                                         : shared_->engine.score(requests, *shared_->instruments);
}

GenerateResult ScoringView::generate(GenerateRequest request) const {
  request.adapter = view_.adapter;
  request.adapter_scale = view_.strength;
  request.adapter_null = view_.null;
  return shared_->engine.generate(std::move(request));
}

ScoringViews::ScoringViews(
    Engine& engine,
    std::vector<NamedAdapter> adapters,
    ViewSlots slots,
    ScoreInstruments* instruments
)
    : adapters_(std::move(adapters)),
      shared_(std::make_shared<ScoringView::Shared>(engine, instruments, slots)) {
  check_adapter_names(adapters_);
}

ScoringView ScoringViews::enter(std::string_view key) const {
  return {shared_, parse_view(key, adapters_)};
}

}  // namespace saker::engine
