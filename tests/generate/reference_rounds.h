// SPDX-License-Identifier: Apache-2.0
#pragma once

// Drafters that learned what their target says: they draft and accept, round by round, what the
// reference does that goldens were made with.

#include "saker/generate/batch_generator.h"
#include "saker/generate/drafter.h"

#include "tests/generate/draft_runs.h"
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace saker::generate {

struct Drafted {
  std::size_t context;  // Tokens before.
  Ids tokens;
};

// A drafter that keeps what it drafts.
class Watched final : public Drafter {
 public:
  Watched(std::unique_ptr<Drafter> drafter, std::vector<Drafted>& log)
      : drafter_(std::move(drafter)), log_(log) {}

  int max_depth() const override { return drafter_->max_depth(); }

  std::span<const int> captured_layers() const override { return drafter_->captured_layers(); }

  std::unique_ptr<DraftState> start(const SequenceRequest& request) override {
    return drafter_->start(request);
  }

  void propose(std::span<Proposal> proposals) override {
    drafter_->propose(proposals);
    for (const Proposal& proposal : proposals) {
      log_.push_back({proposal.context.size(), proposal.tokens});
    }
  }

 private:
  std::unique_ptr<Drafter> drafter_;
  std::vector<Drafted>& log_;
};

// What a reference drafted round by round for one prompt: see the scripts that make goldens.
struct ReferenceRounds {
  Ids prompt;
  Ids tokens;
  Ids contexts;
  Ids drafts;  // [contexts, depth], -1 behind the end.
};

// Those of a file of goldens.
inline ReferenceRounds read_reference_rounds(const std::filesystem::path& file) {
  const auto arrays = mx::load_safetensors(file.string()).first;
  const auto ints = [&](const std::string& name) {
    auto array = mx::contiguous(arrays.at(name));
    mx::eval(array);
    return Ids(array.data<std::int32_t>(), array.data<std::int32_t>() + array.size());
  };
  return {ints("ids"), ints("tokens"), ints("context"), ints("drafts")};
}

// Expects the same tokens, rounds and drafts of this drafter; how many whole rounds there were.
inline std::size_t expect_reference_rounds(
    const models::Model& target,
    DrafterKind kind,
    std::unique_ptr<Drafter> drafter,
    const ReferenceRounds& reference,
    int prefill_step = 512
) {
  const std::size_t depth = reference.drafts.size() / reference.contexts.size();
  // Our rounds get smaller before the end, too, by one token.
  SequenceRequest request =
      request_of(reference.prompt, static_cast<int>(reference.tokens.size() + depth + 1));
  request.speculation = {kind, static_cast<int>(depth)};
  std::vector<Drafted> log;
  Outcome outcome;
  BatchGenerator generator(
      target,
      {.prefill_step = prefill_step},
      nullptr,
      drafters_of(kind, std::make_unique<Watched>(std::move(drafter), log))
  );
  generator.add(std::move(request), std::make_unique<Recorder>(outcome));
  while (!generator.idle()) {
    generator.step();
  }
  outcome.tokens.resize(reference.tokens.size());
  EXPECT_EQ(outcome.tokens, reference.tokens);
  EXPECT_GE(log.size(), reference.contexts.size());
  std::size_t whole = 0;
  for (std::size_t i = 0; i < std::min(log.size(), reference.contexts.size()); ++i) {
    // How many tokens the round before accepted shows in the context.
    EXPECT_EQ(log[i].context, static_cast<std::size_t>(reference.contexts[i]));
    const auto first = reference.drafts.begin() + static_cast<std::ptrdiff_t>(i * depth);
    const Ids expected(first, first + static_cast<std::ptrdiff_t>(depth));
    if (expected.back() >= 0) {
      EXPECT_EQ(log[i].tokens, expected) << "round " << i;
      ++whole;
    }
  }
  return whole;
}

}  // namespace saker::generate
