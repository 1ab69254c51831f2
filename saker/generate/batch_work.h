// SPDX-License-Identifier: Apache-2.0
#pragma once

// A sequence's part in a step of the batch generator.

#include "saker/generate/batch_generator.h"
#include "saker/generate/speculation_check.h"

#include <cstdint>
#include <optional>
#include <span>

namespace saker::generate {

// The next `count` tokens of one sequence in one pass.
struct BatchGenerator::Work {
  Sequence* sequence;
  int count;
  bool wants_token;                            // The span ends with the sequence's last token.
  bool answers = false;                        // All its other tokens have rows.
  Speculator::Draft* draft = nullptr;          // Answers only: the draft tokens, which follow.
  std::optional<SpeculationCheck> check = {};  // Of a round that is to be compared.

  std::span<const std::int32_t> draft_tokens() const {
    return draft == nullptr ? std::span<const std::int32_t>() : draft->tokens;
  }

  bool needs_mask() const { return wants_token && sequence->request.mask != nullptr; }
};

}  // namespace saker::generate
