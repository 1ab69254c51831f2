// SPDX-License-Identifier: Apache-2.0
#pragma once

// Requests to an engine, and results of scoring. Plain values; no MLX.

#include "saker/base/error.h"
#include "saker/base/json/json.h"
#include "saker/engine/constraint.h"
#include "saker/engine/result.h"
#include "saker/engine/speculate.h"
#include "saker/engine/tool_choice.h"
#include "saker/engine/views.h"
#include "saker/sample/options.h"
#include "saker/score/next_distribution.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace saker::engine {

// For max_tokens: an answer ends by itself or where the model's context ends.
inline constexpr int kNoTokenLimit = -1;

// For Output::n.
inline constexpr int kMostChoices = 128;

// The text or the messages that an answer continues.
struct Prompt {
  // Exactly one of these three is given.
  std::optional<std::string> text = {};  // Encoded, BOS added where the tokenizer wants it.
  std::optional<std::vector<std::int32_t>> tokens = {};  // Used as they are.
  std::optional<Json> messages = {};  // Chat messages for the template: [{"role", "content"}, ...].

  std::optional<Json> tools = {};  // For the template, with messages.
  std::optional<bool> think = {};  // Thoughts before the answer; none: the template's way.
  bool continues_last = false;     // The answer continues the last message (text::RenderOptions).
  Json template_kwargs = Json::object();  // More template variables, such as enable_thinking.
  // Reuses this session's cached rows as far as the prompt agrees with them; 0: no session.
  std::uint64_t session = 0;
  // Prompt-cache file whose rows the prompt continues; text is then encoded without special tokens.
  // It must be made with the same adapter, scale, max_kv_size and kv_bits. Not with a session.
  std::filesystem::path cache_in = {};
};

// Who drafts tokens, and how many. Drafts never change an answer.
struct Drafting {
  Speculate method = Speculate::kDefault;
  Acceptance acceptance = Acceptance::kCoupled;
  int depth = kAutoDraftDepth;  // Most draft tokens per pass; auto: as many as pay off.
  // A text that the answer probably repeats, such as a file to edit. Without another method, drafts
  // are copied from it and from the prompt.
  std::optional<std::string> prediction = {};
  // Runs each round's tokens one by one as well, and fails with kInternal if a logit of the two
  // differs. CPU only.
  bool check = false;
};

// The content of an answer, its end, and the report on it.
struct Output {
  int max_tokens = 256;                       // Or kNoTokenLimit.
  std::vector<std::string> stop = {};         // Never shown; the first one ends the answer.
  bool ignore_eos = false;                    // Continues after tokens that end an answer.
  std::optional<Constraint> constraint = {};  // Needs a tokenizer.
  ToolChoice tool_choice = {};                // Among Prompt::tools.
  // Most tokens of reasoning; then its closing marker is forced. kNoTokenLimit: any number.
  int reasoning_budget = kNoTokenLimit;
  // Answers to the same prompt, 1 to kMostChoices; the k-th, from 0, is the one of seed + k. More
  // than one: without a session and cache files.
  int n = 1;
  int logprobs = -1;  // Per token, its log-probability and this many best alternatives; -1: none.
  bool token_events = false;  // The stream has an event for each token (event.h).
  bool whole_text = false;    // Answers to messages come as one text, markers of reasoning and all.
  // File that takes the rows of prompt and answer; the last token's row may be missing.
  std::filesystem::path cache_out = {};
};

// With what a request runs, and when.
struct Placement {
  // Folder of an adapter of mlx-lm or PEFT, or its GGUF file, loaded once and kept; empty: the
  // base. `adapter_scale` is its strength: 0 is the base, 1 the fine-tune.
  std::filesystem::path adapter = {};
  double adapter_scale = 1.0;
  std::optional<NullView> adapter_null = {};  // Replaces the adapter by noise in its shape.
  int max_kv_size = 0;          // > 0: keeps this many cached rows (always the first 4).
  int kv_bits = 16;             // 8 or 4: cached rows are codes of this many bits; 32: float32.
  std::string cache_salt = {};  // Only requests of the same salt share rows of their prompts.
  int priority = 0;             // Requests of higher priority begin first.
  std::string user = {};        // Requests of different users take turns.
  double timeout = 0.0;         // Seconds from `submit` after which the answer ends; 0: none.
};

// A prompt, and how it is continued.
struct Request {
  Prompt prompt = {};
  sample::SamplingOptions sampling = {};
  Drafting drafting = {};
  Output output = {};
  Placement placement = {};
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
  // Asked to stop, the call that it belongs to ends after two passes at most; what it has not scored
  // is kCancelled.
  std::stop_token stop = {};
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
