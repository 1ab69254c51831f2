// SPDX-License-Identifier: Apache-2.0
#pragma once

// A drafter that knows the answers: it proposes what plain decoding gave, but for the places that
// it is told to get wrong.

#include "saker/generate/drafter.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

namespace saker::testing {

class ScriptedDrafter final : public generate::Drafter {
 public:
  using Tokens = std::vector<std::int32_t>;
  // Whether to propose another token than the right one at this place of a context.
  using IsWrong = std::function<bool(std::size_t place)>;

  // What it did, and what became of it; outlives the drafter.
  struct Log {
    std::map<int, int> acknowledged;  // Rounds by how many tokens of their proposal were accepted.
    std::vector<int> proposed;        // Tokens, by round.
    int fail_at = -1;                 // The call that throws.
    int calls = 0;
  };

  // `scripts`: prompts with their answers.
  ScriptedDrafter(std::vector<Tokens> scripts, IsWrong is_wrong, Log& log)
      : scripts_(std::move(scripts)), is_wrong_(std::move(is_wrong)), log_(log) {}

  std::unique_ptr<generate::DraftState> start(const generate::SequenceRequest&) override {
    return std::make_unique<State>(log_);
  }

  void propose(std::span<generate::Proposal> proposals) override {
    if (log_.calls++ == log_.fail_at) {
      throw std::runtime_error("scripted");
    }
    for (generate::Proposal& proposal : proposals) {
      propose(proposal);
      log_.proposed.push_back(static_cast<int>(proposal.tokens.size()));
      static_cast<State&>(*proposal.state).open = true;
    }
  }

 private:
  struct State final : generate::DraftState {
    explicit State(Log& all) : log(all) {}

    void acknowledge(int count) override {
      if (std::exchange(open, false)) {
        ++log.acknowledged[count];
      }
    }

    Log& log;
    bool open = false;
  };

  void propose(generate::Proposal& proposal) const {
    const std::size_t size = proposal.context.size();
    const auto script = std::ranges::find_if(scripts_, [&](const Tokens& tokens) {
      return tokens.size() >= size &&
             std::equal(proposal.context.begin(), proposal.context.end(), tokens.begin());
    });
    if (script == scripts_.end()) {
      return;
    }
    const std::size_t end =
        std::min(size + static_cast<std::size_t>(proposal.depth), script->size());
    for (std::size_t place = size; place < end; ++place) {
      const std::int32_t right = (*script)[place];
      proposal.tokens.push_back(is_wrong_(place) ? (right == 0 ? 1 : right - 1) : right);
    }
  }

  std::vector<Tokens> scripts_;
  IsWrong is_wrong_;
  Log& log_;
};

}  // namespace saker::testing
