// SPDX-License-Identifier: Apache-2.0
#pragma once

// Drafts without a model: what followed the last time the context ended like this. Good where
// answers repeat their prompt: code, summaries, lists, translations of tables.
//
// Earlier places with the same last tokens are found by hash chains over three tokens, as deflate
// finds its matches (RFC 1951, section 4): the longest match of the nearest few wins, ties go to
// the later one. A copy may run into the tokens it has just drafted, so that a period goes on for
// ever.

#include "saker/generate/drafter.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

namespace saker::generate {

// Where sequences of three tokens have occurred in a context that grows.
class GramIndex {
 public:
  // Takes up what is new in `context`, which starts with all tokens of the call before.
  void follow(std::span<const std::int32_t> context);

  // The position after an earlier place that ends as the context does; none: 0. REQUIRES: followed.
  std::size_t find(std::span<const std::int32_t> context) const;

 private:
  std::unordered_map<std::uint64_t, std::uint32_t> last_;  // Gram to the newest place it ends at.
  std::vector<std::uint32_t> previous_;  // By place: the one before of the same gram; 0: none.
};

class PromptLookup final : public Drafter {
 public:
  bool is_free() const override { return true; }

  std::unique_ptr<DraftState> start(const SequenceRequest& request) override;
  void propose(std::span<Proposal> proposals) override;
};

}  // namespace saker::generate
