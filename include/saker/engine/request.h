// SPDX-License-Identifier: Apache-2.0
#pragma once

// Requests to an engine, and its results. Plain values; no MLX.

#include "saker/base/error.h"
#include "saker/base/json/json.h"
#include "saker/engine/constraint.h"
#include "saker/engine/finish_reason.h"
#include "saker/engine/speculate.h"
#include "saker/engine/views.h"
#include "saker/sample/options.h"
#include "saker/score/next_distribution.h"
#include "saker/text/reasoning.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace saker::engine {

// For max_tokens: an answer ends by itself or where the model's context ends.
inline constexpr int kNoTokenLimit = -1;

// A prompt, and how it is continued.
struct GenerateRequest {
  // Exactly one of these three is the prompt.
  std::optional<std::string> prompt;  // Text: encoded, BOS added where the tokenizer wants it.
  std::optional<std::vector<std::int32_t>> tokens;  // Used as they are.
  std::optional<Json> messages;  // Chat messages for the template: [{"role", "content"}, ...].

  std::optional<Json> tools;  // For the template, with messages.
  std::optional<bool> think;  // Thoughts before the answer; none: the template's default.
  Json template_kwargs = Json::object();  // More template variables, such as enable_thinking.

  int max_tokens = 256;  // Or kNoTokenLimit.
  sample::SamplingOptions sampling;
  // For sampling.dry_multiplier: a token whose text contains one of these ends a repetition.
  std::vector<std::string> dry_sequence_breakers = {"\n", ":", "\"", "*"};
  std::vector<std::string> stop;              // Never shown; the first one ends the answer.
  std::optional<Constraint> constraint = {};  // Needs a tokenizer.
  bool ignore_eos = false;                    // Continues after tokens that end an answer.
  int logprobs = -1;  // Per token, its log-probability and this many best alternatives; -1: none.
  Speculate speculate = Speculate::kDefault;
  Acceptance acceptance = Acceptance::kCoupled;
  int draft_depth = kAutoDraftDepth;  // Most draft tokens per pass; auto: as many as pay off.
  // Runs each round's tokens one by one as well, and fails with kInternal if a logit of the two
  // differs. CPU only.
  bool check_speculation = false;
  int priority = 0;      // Requests of higher priority begin first.
  std::string user;      // Requests of different users take turns.
  double timeout = 0.0;  // Seconds from `submit` after which the answer ends; 0: none.
  // Folder of an adapter of mlx-lm or PEFT, loaded once and kept; empty: the base. `adapter_scale`
  // is its strength: 0 is the base, 1 the fine-tune.
  std::filesystem::path adapter;
  double adapter_scale = 1.0;
  std::optional<NullView> adapter_null = {};  // Replaces the adapter by noise in its shape.
  int max_kv_size = 0;  // > 0: keeps this many cached rows (always the first 4).
  int kv_bits = 16;     // 8 or 4: cached rows are codes of this many bits; 32: float32.
  // Reuses this session's cached rows as far as the prompt agrees with them; 0: no session.
  std::uint64_t session = 0;
  // Prompt-cache file whose rows the prompt continues; text is then encoded without special tokens.
  // It must be made with the same adapter, scale, max_kv_size and kv_bits. Not with a session.
  std::filesystem::path cache_in;
  // File that takes the rows of prompt and answer; the last token's row may be missing.
  std::filesystem::path cache_out;
};

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
  double prompt_tps = 0.0;
  int generation_tokens = 0;
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
  // Answers to messages only: `text` in two parts, see text/reasoning.h.
  std::optional<text::AnswerParts> parts = {};
  FinishReason finish_reason = FinishReason::kLength;
  std::vector<TokenLogprob> logprobs;  // One per token, if requested.
  GenerateStats stats;
};

// Counts of the prefix cache since the engine was loaded.
struct PrefixCacheStats {
  std::int64_t lookups = 0;          // Prompts that were looked up.
  std::int64_t hits = 0;             // Lookups that found at least one row.
  std::int64_t prompt_tokens = 0;    // In all prompts looked up.
  std::int64_t restored_tokens = 0;  // Prompt tokens that did not run again.
  std::int64_t loaded_tokens = 0;    // Rows that came back from the folder.
  std::int64_t evictions = 0;
  std::size_t bytes = 0;  // Held now.
};

// Tokens to score, and views to score them in.
struct ScoreRequest {
  // The input: a text, a prompt with its completion, or a prompt alone (only its next token). Each
  // may also be given as tokens.
  std::optional<std::string> text = {};
  std::optional<std::string> prompt = {};
  std::optional<std::string> completion = {};
  std::optional<std::vector<std::int32_t>> tokens = {};
  std::vector<std::int32_t> prompt_tokens = {};  // Not scored, only seen.
  int kv_bits = 16;  // 8 or 4: cached rows are codes of this many bits; 32: float32.
  int top_k = 0;     // > 0: the next-token distribution after the last token.
  // > 0: a sequence longer than the model's context is scored in windows of that length, which move
  // by this many tokens (windows.h). 0: such a sequence is refused. Without top_k it may have one
  // token more than the context, because the last one is only scored.
  int stride = 0;
  std::vector<View> views = {};  // None: the base alone.
  // Takes a view's logits [vocab_size] after each token, float32, as the head computes them; may be
  // empty. Called on the engine's threads, several at a time. Each row comes once, unless a batch
  // failed and runs again.
  std::function<void(std::size_t view, std::size_t row, std::span<const float> logits)>
      take_logits = {};
};

// The log-probability of a completion after a prompt.
inline ScoreRequest logprob_of(std::string prompt, std::string completion) {
  return {.prompt = std::move(prompt), .completion = std::move(completion)};
}

// The log-probability of every token of a text, given the tokens before it.
inline ScoreRequest rolling_logprob(std::string text) {
  return {.text = std::move(text)};
}

// The distribution of the token after a prompt.
inline ScoreRequest next_token_dist(std::string prompt, int top_k = 256) {
  return {.prompt = std::move(prompt), .top_k = top_k};
}

// One view's scores of the tokens.
struct ViewScores {
  std::string view = {};  // As it was requested.
  std::vector<std::optional<double>> logprobs = {
  };  // Per token; none for the first token and the prompt's.
  double sum = 0.0;        // Over the scored tokens.
  double mean = 0.0;       // Per scored token; 0 if there is none.
  bool is_greedy = false;  // Every scored token was the most probable one.
  std::optional<score::NextDistribution> next = {};
};

// Scores of one request in all its views.
struct ScoreResult {
  std::vector<std::int32_t> tokens = {};  // All, prompt first; none for an empty text without BOS.
  bool boundary_merged = false;           // A token spans the border of prompt and completion.
  bool first_token_unscored = false;      // Nothing is before the completion's first token.
  std::vector<ViewScores> views = {};     // At least one.
};

// The outcome of one request among several.
using ScoreOutcome = std::variant<ScoreResult, Error>;

}  // namespace saker::engine
