// SPDX-License-Identifier: Apache-2.0
#pragma once

// Drafts without a model: copies what followed the last occurrence of the context's end. Good for
// answers that repeat their prompt: code, summaries, lists, translations of tables.
//
// Hash chains over three tokens find earlier places with the same last tokens, as deflate finds its
// matches (RFC 1951, section 4). The longest match of the nearest few wins; ties go to the later
// one. A copy may run into the tokens it just drafted, so a period repeats without end.
//
// A prediction of the answer counts as text before the prompt. The prompt's end stands before it
// once more, so that the answer's first tokens are found there, too.

#include "saker/generate/drafter.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

namespace saker::generate {

// Index of three-token sequences in a growing context.
class GramIndex {
 public:
  // Indexes new tokens of `context`, which starts with all tokens of the previous call.
  void follow(std::span<const std::int32_t> context);

  // The position after an earlier place with the same end as the context; 0: none. REQUIRES:
  // followed.
  std::size_t find(std::span<const std::int32_t> context) const;

 private:
  std::unordered_map<std::uint64_t, std::uint32_t> last_;  // Gram to the newest place it ends at.
  std::vector<std::uint32_t> previous_;  // By place: the previous one of the gram; 0: none.
};

class PromptLookup final : public Drafter {
 public:
  bool is_free() const override { return true; }

  std::unique_ptr<DraftState> start(const SequenceRequest& request) override;
  void propose(std::span<Proposal> proposals) override;
};

}  // namespace saker::generate
