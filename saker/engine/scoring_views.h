// SPDX-License-Identifier: Apache-2.0
#pragma once

// Views as objects, for programs that ask one view at a time. Any number may be held at once, from
// any thread. To find places that mix views up, a program can request a single slot, as in backends
// that switch one model.
//
//   ScoringViews views(*engine, {{"", "path/to/adapter"}});
//   const double delta = views.enter("ft").logprob_of(p, c) - views.enter("base").logprob_of(p, c);

#include "saker/engine/engine.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace saker::engine {

enum class ViewSlots : std::uint8_t {
  kAny,
  kSingle,  // A second view is refused while one is held.
};

// One view while it is held. Movable; the object that made it must outlive it.
class ScoringView {
 public:
  const std::string& key() const { return view_.key; }  // As it was requested.

  std::string id() const { return view_id(view_); }  // "base", "ft", "scaled_0.50", "null_7", ...

  // Sum of log p over the completion's tokens, in nats. Throws the request's error, as all below;
  // kInvalidArgument for a prompt without tokens, since nothing is before the first scored one.
  double logprob_of(std::string prompt, std::string completion) const;
  // log p of every token but the first; none for fewer than two tokens.
  ScoreResult rolling_logprob(std::string text) const;
  // Throws kInvalidArgument for top_k < 1.
  score::NextDistribution next_token_dist(std::string prompt, int top_k = 256) const;
  // Many requests in common passes; their own views are ignored. A failed request has an Error in
  // its place.
  std::vector<ScoreOutcome> score(std::vector<ScoreRequest> requests) const;
  GenerateResult generate(GenerateRequest request) const;

 private:
  friend class ScoringViews;
  struct Shared;
  struct Slot;

  ScoringView(std::shared_ptr<Shared> shared, View view);
  ScoreResult score_one(ScoreRequest request) const;

  View view_;
  std::shared_ptr<Shared> shared_;
  std::unique_ptr<Slot, void (*)(Slot*)> slot_;  // Released with the view.
};

class ScoringViews {
 public:
  // `instruments`: null, or a cache and counters, which must outlive this. Throws as
  // check_adapter_names does.
  ScoringViews(
      Engine& engine,
      std::vector<NamedAdapter> adapters,
      ViewSlots slots = ViewSlots::kAny,
      ScoreInstruments* instruments = nullptr
  );

  // A view by its key, see parse_view. Throws what that throws; with a single slot,
  // kInvalidArgument while another view is held.
  ScoringView enter(std::string_view key) const;

 private:
  std::vector<NamedAdapter> adapters_;
  std::shared_ptr<ScoringView::Shared> shared_;
};

}  // namespace saker::engine
