// SPDX-License-Identifier: Apache-2.0
#pragma once

// Drafts by the target's own MTP head: the head's row of the last token gives the next one, and
// each further one comes from the head's row of the token before it. Each token is chosen as the
// target would choose it, with the same processors, filters and noise at the same position.
// Sequences draft together, one pass of the head per token.
//
// Each sequence has a cache of its own in the head, which holds the rows that the target's rows
// make; those of draft tokens are taken back at once. Until a proposal is asked for, rows that the
// target has run are just kept, up to 64 MB of a sequence. Beyond that, rows of a prompt are taken
// up into the cache; rows of an answer that nobody drafts for are dropped, and drafting starts
// again from newer ones. The same where the beginning of a context was never run, as its rows were
// known. Only differences of positions matter to the head, so its context may begin anywhere.

#include "saker/generate/drafter.h"
#include "saker/generate/pass.h"
#include "saker/models/model.h"
#include "saker/models/mtp.h"

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace saker::generate {

class Mtp final : public Drafter {
 public:
  static constexpr std::size_t kKeptBytes = std::size_t{64} << 20;

  // Both outlive the drafter. `kept_bytes`: of a sequence's rows that are not taken up yet. Throws
  // kInvalidArgument unless the head is one for this target.
  Mtp(const models::MtpHead& head, const models::Model& target, std::size_t kept_bytes = kKeptBytes
  );

  std::span<const int> captured_layers() const override { return captured_; }

  std::unique_ptr<DraftState> start(const SequenceRequest& request) override;
  void propose(std::span<Proposal> proposals) override;

 private:
  struct State;
  struct Part;

  // Runs the kept rows of these sequences through the head; the last of them when something is
  // evaluated that needs them.
  void prefill_draft_cache(std::span<State* const> states) const;
  // The token that each part's last row gives; parts that want no more go.
  void choose_tokens(std::vector<Part>& parts) const;
  // The row of each part's last draft token, to be evaluated with the next choice.
  void queue_drafted(std::span<Part> parts) const;

  const models::MtpHead& head_;
  const models::Model& target_;
  std::size_t kept_bytes_;
  std::array<int, 1> captured_;
};

}  // namespace saker::generate
