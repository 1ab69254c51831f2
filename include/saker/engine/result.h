// SPDX-License-Identifier: Apache-2.0
#pragma once

// An answer, and what it took. Plain values; no MLX.

#include "saker/engine/finish_reason.h"
#include "saker/text/answer_parts.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace saker::engine {

// An answer's token with alternatives.
struct TokenLogprob {
  std::int32_t token = 0;
  double logprob = 0.0;                              // Natural log, from raw logits.
  std::vector<std::pair<std::int32_t, double>> top;  // Best first; ties: the lower id first.
};

// Counts and rates of one request.
struct GenerateStats {
  int prompt_tokens = 0;
  int cached_tokens = 0;  // Tokens of the prompt whose rows were known.
  int preemptions = 0;    // Times that it had to wait, after it began, for others' need of memory.
  double prompt_tps = 0.0;
  int generation_tokens = 0;
  int reasoning_tokens = 0;  // Tokens of its reasoning, markers included. Answers to messages only.
  double generation_tps = 0.0;
  double time_to_first_token_s = 0.0;
  std::size_t peak_memory_bytes = 0;  // The process's peak.
  std::string drafter = "none";       // A name of kSpeculateNames.
  int rounds = 0;                     // Passes that checked draft tokens.
  int drafted = 0;                    // Draft tokens in all rounds.
  int accepted = 0;                   // Draft tokens that were right.
  int compared = 0;                   // Rows of logits that `check_speculation` found equal.
  std::string caches;                 // The layers' content at the end, see cache/summary.h.
};

// An answer.
struct GenerateResult {
  std::vector<std::int32_t> prompt_tokens;
  std::vector<std::int32_t> tokens;  // Without the EOS that ended it.
  std::string text;                  // Without the stop string; empty without a tokenizer.
  // Answers to messages only: `text` in its parts, see text/output/output_parser.h.
  std::optional<text::AnswerParts> parts = {};
  FinishReason finish_reason = FinishReason::kLength;
  // The cause of FinishReason::kStop: at most one of the three.
  std::optional<std::int32_t> stop_token = {};  // A token that ends answers.
  std::optional<std::string> stop_string = {};  // One of Output::stop.
  bool is_constraint_done = false;              // The constraint lets nothing follow.
  std::vector<TokenLogprob> logprobs;           // One per token, if requested.
  GenerateStats stats;
};

}  // namespace saker::engine
