// SPDX-License-Identifier: Apache-2.0
#pragma once

// Drafts by a smaller model of the same vocabulary: it chooses each next token as the target would,
// with the same processors, filters and noise at the same position, so that the two agree as often
// as their distributions allow. Sequences draft together, one pass of the small model per token.
//
// Each sequence has a cache of its own in the draft model. Rows of draft tokens are a transaction
// until the target has judged them. A sequence whose tokens or length the draft model can't take,
// or where it gives no number, is not drafted for any more.

#include "saker/generate/drafter.h"
#include "saker/generate/pass.h"
#include "saker/models/model.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace saker::generate {

class DraftModel final : public Drafter {
 public:
  // `model` outlives the drafter. `prefill_step`: rows of one pass while catching up.
  DraftModel(const models::Model& model, int prefill_step);

  std::unique_ptr<DraftState> start(const SequenceRequest& request) override;
  void propose(std::span<Proposal> proposals) override;

 private:
  struct Part;

  // Whether the sequence can be drafted for; lowers the depth to the room that is left.
  bool can_take(Proposal& proposal, std::int64_t rows) const;
  // Runs rows of the context, until what is left of each fits one pass.
  void catch_up(std::span<const Part> parts) const;
  RowLogits run_committed(std::span<const PassSpan> spans) const;
  // One pass over the next rows of these parts, and the token that each chooses.
  void draft_tokens(std::span<Part> parts) const;

  const models::Model& model_;
  std::size_t prefill_step_;
};

}  // namespace saker::generate
