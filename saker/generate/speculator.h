// SPDX-License-Identifier: Apache-2.0
#pragma once

// Draft tokens for the sequences of a pass, and their acceptance. A round begins with `propose`.
// Then one pass of the target runs each sequence's next token and its drafts. Tokens are chosen one
// by one while they equal the drafts. `finish_round` ends the round.
//
// Each choice is that of plain decoding: the sampler's noise is a function of the position
// (docs/adr/0003-sampling-noise.md). So drafts change neither tokens nor log-probabilities, greedy
// or sampled, unless a request uses acceptance by rejection. Threading: the thread that owns MLX.

#include "saker/generate/depth_control.h"
#include "saker/generate/drafter.h"
#include "saker/generate/sequence.h"
#include "saker/kernels/mx.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

namespace saker::generate {

using Drafters = std::map<DrafterKind, std::unique_ptr<Drafter>>;

// One sequence's drafting state.
struct Drafting {
  DrafterKind drafter = DrafterKind::kNone;
  int depth = kAutoDepth;
  std::unique_ptr<DraftState> state;  // Null: not drafted for.
  AcceptanceRates rates = {};
  // Context length from which drafting resumes.
  std::size_t resume_length = 0;
  SpeculationCounts counts = {};
  // Tokens that the mask forced, as it guessed.
  int forced_checked = 0;
  int forced_right = 0;

  // For statistics.
  DrafterKind reported() const {
    return drafter == DrafterKind::kNone && counts.rounds > 0 ? DrafterKind::kConstraint : drafter;
  }

  // False if drafts are not wanted, or the mask's guesses are often wrong.
  bool takes_forced() const;
};

class Speculator {
 public:
  // Prompt lookup is built in; `drafters` may replace it.
  explicit Speculator(Drafters drafters);

  // Throws kInvalidArgument for a depth out of range, kUnsupported for a missing drafter. If a
  // drafter fails to start, the sequence has no drafts.
  Drafting start(const SequenceRequest& request) const;

  // The target's layers that the pass of such a sequence has to capture; empty: none.
  std::span<const int> captured_layers(const Drafting& drafting) const;

  // Passes on captured hidden states of committed tokens, see DraftState::keep.
  static void keep(
      Drafting& drafting,
      const mx::array& features,
      std::span<const std::int32_t> next,
      bool of_prompt
  );

  // One sequence in the coming pass.
  struct Draft {
    Drafting* drafting = nullptr;
    std::span<const std::int32_t> context = {};
    std::int64_t position = 0;              // Position of the token after the context.
    cache::SequenceCache* cache = nullptr;  // See Proposal.
    int max_tokens = 0;                     // Most draft tokens.
    std::vector<std::int32_t> tokens = {};  // The proposal.
    std::vector<sample::Distribution> chances = {};
    bool is_forced = false;  // The tokens come from the sequence's mask; no drafter is asked.
    int accepted = 0;        // Draft tokens that stayed; set before `finish_round`.
    int chosen = 0;          // Tokens that the answer gained; set before `finish_round`.

    // Takes these tokens, or the first ones of them, instead of a drafter's.
    void force(std::vector<std::int32_t> forced);

    // Adds the round to the sequence's counts.
    void count() const;
  };

  // Fills in the tokens. `drafts`: all answers of the pass; `measured`: it has no other tokens.
  void propose(std::span<Draft> drafts, bool measured);

  // Ends the round. `pass_seconds`: duration of the pass; 0 if it is not representative.
  void finish_round(std::span<Draft> drafts, double pass_seconds);

 private:
  struct Source {
    std::unique_ptr<Drafter> drafter;
    DepthControl control = {};
    AcceptanceRates rates = {};  // Over all sequences.
    double seconds = 0.0;        // Time of this round's proposals.
    bool steady = true;
  };

  static void propose(
      Source& source, std::span<Draft* const> drafts, int other_rows, bool measured
  );
  // Requests proposals of these depths.
  static void ask(Source& source, std::span<Draft* const> drafts, std::span<const int> depths);

  std::map<DrafterKind, Source> sources_;
};

}  // namespace saker::generate
