// SPDX-License-Identifier: Apache-2.0
#pragma once

// Chooses tokens from a pass's logits. Each sequence's choices are a task of their own: tasks of
// different sequences run on any threads, at the same time. They touch only their sequence's
// sampler, mask and context. Listeners hear of the tokens later.

#include "saker/generate/running_sequence.h"
#include "saker/generate/sequence.h"
#include "saker/generate/speculator.h"
#include "saker/models/model.h"

#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace saker::generate {

// The result for one row of logits.
struct TokenChoice {
  std::optional<GeneratedToken> token;  // None: nothing may come, and the answer ends.
  bool in_answer = false;               // It is no stop token.
  bool as_drafted = false;              // It equals the draft, so the next row is valid.
  std::optional<EndReason> end;         // The answer ends with it.
};

// A sequence's choices of one pass, in order.
struct TokenChoices {
  std::vector<TokenChoice> chosen;
  std::exception_ptr error;  // The choice after those failed.

  int rows() const { return static_cast<int>(chosen.size()) + (error ? 1 : 0); }
};

// Gives the logits of a row, to overwrite.
using RowOf = std::function<std::span<float>(int row)>;

// Chooses tokens while they equal the draft (null: none) and the answer goes on. The answer's tokens
// join the context.
TokenChoices choose_tokens(
    RunningSequence& sequence,
    const Speculator::Draft* draft,
    const RowOf& row_of,
    const models::ModelInfo& model
) noexcept;

}  // namespace saker::generate
