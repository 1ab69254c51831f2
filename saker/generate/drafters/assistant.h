// SPDX-License-Identifier: Apache-2.0
#pragma once

// Drafts by an assistant of the target. It reads the target's caches and its last hidden
// state, so a sequence without drafts costs only the memory of one hidden state. Each token is
// chosen as the target would choose it, with the same processors, filters and noise at the same
// position. Sequences draft together, one pass of the assistant per token.

#include "saker/generate/drafter.h"
#include "saker/models/assistant.h"
#include "saker/models/model.h"

#include <array>
#include <memory>
#include <span>

namespace saker::generate {

class Assistant final : public Drafter {
 public:
  // Both outlive the drafter; the assistant fits this target.
  Assistant(const models::AssistantDraft& assistant, const models::Model& target)
      : assistant_(assistant), target_(target), captured_{target.info().layer_count} {}

  std::span<const int> captured_layers() const override { return captured_; }

  std::unique_ptr<DraftState> start(const SequenceRequest& request) override;
  void propose(std::span<Proposal> proposals) override;

 private:
  struct State;
  struct Part;

  // Drafts one more token for each part.
  void draft_tokens(std::span<Part> parts) const;

  const models::AssistantDraft& assistant_;
  const models::Model& target_;
  std::array<int, 1> captured_;
};

}  // namespace saker::generate
