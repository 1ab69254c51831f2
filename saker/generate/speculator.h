// SPDX-License-Identifier: Apache-2.0
#pragma once

// Draft tokens for the sequences of a pass, and what became of them. A round is: `propose`, then
// one pass of the target over each sequence's next row and its draft tokens, then the choice of
// tokens row by row while they equal the drafts, then `settle`.
//
// The token of a row is what plain decoding chooses there: the sampler's noise is a function of the
// position (docs/adr/0003-sampling-noise.md), so drafts change neither tokens nor
// log-probabilities, greedy or sampled; unless a request asks for acceptance by rejection.
// Threading: the thread that owns MLX.

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

// The drafting side of one sequence.
struct Drafting {
  DrafterKind drafter = DrafterKind::kNone;
  int depth = kAutoDepth;
  std::unique_ptr<DraftState> state;  // Null: not drafted for.
  AcceptanceRates rates = {};
  // Tokens that the context has at most where the next round drafts again.
  std::size_t resume_length = 0;
  SpeculationCounts counts = {};
};

class Speculator {
 public:
  // Prompt lookup is always there. `drafters` may bring one of its own.
  explicit Speculator(Drafters drafters);

  // Throws kInvalidArgument for a depth out of range, kUnsupported for a drafter that is not there.
  // A drafter that fails to start leaves the sequence without drafts.
  Drafting start(const SequenceRequest& request) const;

  // The layers of the target that the pass of such a sequence has to tap; empty: none.
  std::span<const int> captured_layers(const Drafting& drafting) const;

  // Hands on what they gave for rows that were committed, see DraftState::keep.
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
    std::int64_t position = 0;              // Of the token after the context.
    cache::SequenceCache* cache = nullptr;  // See Proposal.
    int max_tokens = 0;                     // Draft tokens at most.
    std::vector<std::int32_t> tokens = {};  // The proposal.
    std::vector<sample::Distribution> chances = {};
    int accepted = 0;  // Of them; set before `settle`.
    int chosen = 0;    // Tokens that the round gave; likewise.

    // Adds the round to the sequence's counts.
    void count() const;
  };

  // Fills in the tokens. `drafts`: all answers of the pass; `measured`: it has no other rows.
  void propose(std::span<Draft> drafts, bool measured);

  // Ends the round. `pass_seconds`: what the pass took, 0 where it says nothing about later ones.
  void settle(std::span<Draft> drafts, double pass_seconds);

 private:
  struct Source {
    std::unique_ptr<Drafter> drafter;
    DepthControl control = {};
    AcceptanceRates rates = {};  // Of all sequences.
    double seconds = 0.0;        // Of this round's proposals.
    bool steady = true;
  };

  static void propose(
      Source& source, std::span<Draft* const> drafts, int other_rows, bool measured
  );
  // Asks for proposals of these depths.
  static void ask(Source& source, std::span<Draft* const> drafts, std::span<const int> depths);

  std::map<DrafterKind, Source> sources_;
};

}  // namespace saker::generate
