// SPDX-License-Identifier: Apache-2.0
#pragma once

// A drafter that replays how often another one was right, at the cost of a real one.

#include "saker/generate/drafter.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace saker::generate {

// Drafts as another drafter does, at its cost, and notes how many tokens of each proposal were
// right. With a script it then proposes other tokens: as many of the script's as the replayed
// rounds had right, and a wrong one.
class Replay final : public Drafter {
 public:
  using Tokens = std::vector<std::int32_t>;

  // `inner` outlives this.
  explicit Replay(Drafter& inner) : inner_(inner) {}

  void follow(Tokens script, std::vector<int> rounds) {
    script_ = std::move(script);
    rounds_ = std::move(rounds);
    next_ = 0;
  }

  // Right tokens by round, since the last call.
  std::vector<int> noted() { return std::exchange(noted_, {}); }

  DraftCost cost() const override { return inner_.cost(); }

  int max_depth() const override { return inner_.max_depth(); }

  std::span<const int> captured_layers() const override { return inner_.captured_layers(); }

  std::unique_ptr<DraftState> start(const SequenceRequest& request) override {
    return std::make_unique<State>(*this, inner_.start(request));
  }

  void propose(std::span<Proposal> proposals) override {
    std::vector<Proposal> inner;
    for (const Proposal& proposal : proposals) {
      inner.push_back(proposal);
      inner.back().state = static_cast<State&>(*proposal.state).inner.get();
    }
    inner_.propose(inner);
    for (std::size_t i = 0; i < proposals.size(); ++i) {
      proposals[i].tokens = script_.empty() ? std::move(inner[i].tokens) : scripted(proposals[i]);
      static_cast<State&>(*proposals[i].state).open = !proposals[i].tokens.empty();
    }
  }

 private:
  // Neighbouring rounds come from different answers, so that a few are like all.
  static constexpr std::size_t kStride = 97;

  struct State final : DraftState {
    State(Replay& drafter, std::unique_ptr<DraftState> state)
        : owner(drafter), inner(std::move(state)) {}

    void acknowledge(int count) override {
      // The inner drafter has seen its own tokens: none of them came to be.
      inner->acknowledge(owner.script_.empty() ? count : 0);
      if (std::exchange(open, false)) {
        owner.noted_.push_back(count);
      }
    }

    void keep(const mx::array& features, std::span<const std::int32_t> next, bool of_prompt)
        override {
      inner->keep(features, next, of_prompt);
    }

    Replay& owner;
    std::unique_ptr<DraftState> inner;
    bool open = false;
  };

  Tokens scripted(const Proposal& proposal) {
    const int right = rounds_[next_++ * kStride % rounds_.size()];
    const std::size_t first = proposal.context.size();
    Tokens tokens;
    for (int i = 0; i < proposal.depth; ++i) {
      const std::size_t place = first + static_cast<std::size_t>(i);
      const std::int32_t token = place < script_.size() ? script_[place] : 0;
      tokens.push_back(i < right ? token : (token == 0 ? 1 : token - 1));
    }
    return tokens;
  }

  Drafter& inner_;
  Tokens script_;
  std::vector<int> rounds_;
  std::size_t next_ = 0;
  std::vector<int> noted_;
};

}  // namespace saker::generate
