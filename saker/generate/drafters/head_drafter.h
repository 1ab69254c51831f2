// SPDX-License-Identifier: Apache-2.0
#pragma once

// Drafts by a head that was made for the target. The head's output for the last token gives the
// next one; each further token comes from the head's output for the one before. Each token is
// chosen as the target would choose it, with the same processors, filters and noise at the same
// position. Sequences draft together, one pass of the head per token.
//
// Each sequence has its own cache in the head, filled from the target's hidden states; rows of
// draft tokens are rolled back at once. Hidden states wait, up to 64 MB per sequence, until a
// proposal is requested. Beyond that limit, tokens of a prompt are run into the cache. Tokens of an
// answer without drafts are dropped, and drafting starts again from newer ones. It also starts
// later if the beginning of a context never ran because its rows were known. The head depends only
// on differences of positions, so its context may begin anywhere.

#include "saker/generate/drafter.h"
#include "saker/generate/pass.h"
#include "saker/models/draft_head.h"
#include "saker/models/model.h"

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace saker::generate {

class HeadDrafter : public Drafter {
 public:
  static constexpr std::size_t kKeptBytes = std::size_t{64} << 20;

  // Both outlive the drafter. `kept_bytes`: limit for one sequence's pending hidden states.
  // REQUIRES: the head fits this target.
  HeadDrafter(const models::DraftHead& head, const models::Model& target, std::size_t kept_bytes);

  std::span<const int> captured_layers() const override { return captured_; }

  std::unique_ptr<DraftState> start(const SequenceRequest& request) override;
  void propose(std::span<Proposal> proposals) override;

 private:
  struct State;
  struct Part;

  // Runs the pending hidden states of these sequences through the head. The last ones are evaluated
  // together with the first result that needs them.
  void prefill_draft_cache(std::span<State* const> states) const;
  // Chooses the token of each part's last output; removes parts that want no more.
  void choose_tokens(std::vector<Part>& parts) const;
  // Queues each part's last draft token; it is evaluated with the next choice.
  void queue_drafted(std::span<Part> parts) const;

  const models::DraftHead& head_;
  const models::Model& target_;
  std::size_t kept_bytes_;
  std::vector<int> captured_;
};

}  // namespace saker::generate
