// SPDX-License-Identifier: Apache-2.0
#pragma once

// Drafts by a DFlash model: one pass gives a whole block of tokens, from what some layers of the
// target gave for the tokens so far. Each token is chosen as the target would choose it, with the
// same processors, filters and noise at the same position.
//
// Each sequence has a cache of its own in the draft, which holds context rows only. Until a
// proposal is asked for, rows that the target has run are just kept, up to 64 MB of a sequence.
// Beyond that, rows of a prompt are taken up into the cache; rows of an answer that nobody drafts
// for are dropped, and drafting starts again from newer ones. The same where the beginning of a
// context was never run, as its rows were known. Only differences of positions matter to the draft,
// so its context may begin anywhere.

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

  // Both models outlive the drafter. `kept_bytes`: of a sequence's rows that are not taken up yet.
  // Throws kInvalidArgument unless the draft is one for this target.
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

  // Runs the kept rows of these sequences through the draft.
  void prefill_draft_cache(std::span<State* const> states) const;
  // Drafts a block for each part.
  void draft(std::span<Part> parts) const;
  void choose(Part& part, std::span<float> logits, std::span<const float> projected) const;

  const models::DflashDraft& draft_;
  const models::Model& target_;
  std::size_t kept_bytes_;
  int widest_ = 0;  // Window of the draft's layers; 0: one of them sees the whole context.
};

}  // namespace saker::generate
