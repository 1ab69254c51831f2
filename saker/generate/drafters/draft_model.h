// SPDX-License-Identifier: Apache-2.0
#pragma once

// Drafts by a smaller model with the same vocabulary. It chooses each token as the target would,
// with the same processors, filters and noise at the same position. So the two agree as often as
// their distributions allow. Sequences draft together, one pass of the small model per token.
//
// Each sequence has its own cache in the draft model. Rows of draft tokens are a transaction until
// the target has checked them. A sequence gets no more drafts if the draft model can't take its
// tokens or length, or gives no logit that is a number.

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
  // `model` outlives the drafter. `prefill_step`: tokens per pass while catching up.
  DraftModel(const models::Model& model, int prefill_step);

  std::unique_ptr<DraftState> start(const SequenceRequest& request) override;
  void propose(std::span<Proposal> proposals) override;

 private:
  struct Part;

  // True if the sequence can have drafts; reduces the depth to the remaining room.
  bool can_take(Proposal& proposal, std::int64_t rows) const;
  // Runs context tokens until the rest of each part fits one pass.
  void catch_up(std::span<const Part> parts) const;
  RowLogits run_committed(std::span<const PassSpan> spans) const;
  // Runs one pass over the parts' next tokens and chooses each part's draft token.
  void draft_tokens(std::span<Part> parts) const;

  const models::Model& model_;
  std::size_t prefill_step_;
};

}  // namespace saker::generate
