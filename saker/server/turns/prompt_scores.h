// SPDX-License-Identifier: Apache-2.0
#pragma once

// Log-probabilities of given tokens with the best alternatives at each place.

#include "saker/engine/language_model.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <stop_token>
#include <utility>
#include <vector>

namespace saker::server {

struct PromptScores {
  std::vector<std::int32_t> tokens;
  std::vector<std::optional<double>> logprobs;  // None for the first token.
  // Per token, best first; ties: the lower id first. Empty for the first token.
  std::vector<std::vector<std::pair<std::int32_t, double>>> top;
  // Per token, how many tokens are at least as likely; 1: it is the best. 0 for the first token.
  std::vector<int> ranks;
};

// Which numbers are wanted.
struct PromptScoring {
  int top = 0;                         // Best alternatives.
  bool ranks = false;                  // Otherwise all are 0.
  std::filesystem::path adapter = {};  // Empty: the base.
  std::stop_token stop = {};
};

// Waits for the engine: not for the server's thread. Throws as LanguageModel::score.
// REQUIRES: each list has tokens.
std::vector<PromptScores> score_prompts(
    engine::LanguageModel& model,
    const std::vector<std::vector<std::int32_t>>& prompts,
    const PromptScoring& wanted
);

}  // namespace saker::server
