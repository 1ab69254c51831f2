// SPDX-License-Identifier: Apache-2.0
#pragma once

// Drafts by a DFlash model. One pass gives a whole block of tokens, from hidden states of some
// target layers for the tokens so far. Each token is chosen as the target would choose it, with the
// same processors, filters and noise at the same position.
//
// Each sequence has its own cache in the draft, with rows of the context only. The target's hidden
// states wait, up to 64 MB per sequence, until a proposal is requested. Beyond that limit, tokens
// of a prompt are run into the cache. Tokens of an answer without drafts are dropped, and drafting
// starts again from newer ones. It also starts later if the beginning of a context never ran
// because its rows were known. The draft depends only on differences of positions, so its context
// may begin anywhere.

#include "saker/generate/drafter.h"
#include "saker/models/dflash.h"
#include "saker/models/model.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace saker::generate {

class Dflash final : public Drafter {
 public:
  static constexpr std::size_t kKeptBytes = std::size_t{64} << 20;

  // Both models outlive the drafter. `kept_bytes`: limit for one sequence's pending hidden states.
  // Throws kInvalidArgument unless the draft fits this target.
  Dflash(
      const models::DflashDraft& draft,
      const models::Model& target,
      std::size_t kept_bytes = kKeptBytes
  );

  DraftCost cost() const override { return DraftCost::kByBlock; }

  int max_depth() const override;

  std::span<const int> captured_layers() const override { return draft_.config().target_layers; }

  std::unique_ptr<DraftState> start(const SequenceRequest& request) override;
  void propose(std::span<Proposal> proposals) override;

 private:
  struct State;
  struct Part;

  // Runs the pending hidden states of these sequences through the draft.
  void prefill_draft_cache(std::span<State* const> states) const;
  // Drafts a block for each part.
  void draft(std::span<Part> parts) const;
  void choose(Part& part, std::span<float> logits, std::span<const float> projected) const;

  const models::DflashDraft& draft_;
  const models::Model& target_;
  std::size_t kept_bytes_;
  int widest_ = 0;  // Window of the draft's layers; 0: one sees the whole context.
};

}  // namespace saker::generate
