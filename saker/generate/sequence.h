// SPDX-License-Identifier: Apache-2.0
#pragma once

// Input and output of a batch generator: token ids in, token ids out. Plain values.

#include "saker/cache/sequence_cache.h"
#include "saker/nn/adapter.h"
#include "saker/sample/options.h"
#include "saker/sample/token_mask.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace saker::generate {

// Sources of draft tokens, see drafter.h.
// kConstraint is no request's: an answer without another one had its mask's forced tokens as drafts.
enum class DrafterKind : std::uint8_t {
  kNone,
  kPromptLookup,
  kDraftModel,
  kMtp,
  kDflash,
  kEagle3,
  kConstraint
};

// The names in requests and statistics.
constexpr std::string_view drafter_name(DrafterKind kind) {
  constexpr std::string_view kNames[] = {
      "none", "prompt-lookup", "draft", "mtp", "dflash", "eagle3", "constraint"
  };
  return kNames[static_cast<std::size_t>(kind)];
}

inline constexpr int kAutoDepth = -1;
inline constexpr int kMaxDraftDepth = 64;

// Decides which draft tokens an answer takes.
enum class Acceptance : std::uint8_t {
  kCoupled,  // Plain decoding's tokens only: drafts change the cost, nothing else.
  // Takes more draft tokens if tokens are sampled, see sample/acceptance.h. The answer has the same
  // distribution, but its tokens depend on what was drafted when.
  kRejection,
};

struct Speculation {
  DrafterKind drafter = DrafterKind::kNone;
  int depth = kAutoDepth;  // Most draft tokens per round; auto: as many as pay off.
  Acceptance acceptance = Acceptance::kCoupled;
  bool check = false;  // Compares each round with plain decoding, see speculation_check.h.
};

struct SpeculationCounts {
  int rounds = 0;    // Passes that checked at least one draft token.
  int drafted = 0;   // Draft tokens that were checked.
  int accepted = 0;  // Checked draft tokens that are in the answer.
  int compared = 0;  // Rows that were compared with plain decoding.
};

struct SequenceRequest {
  std::vector<std::int32_t> prompt;
  // Holds rows of the prompt's first tokens (not of all); none: a new cache.
  std::optional<cache::SequenceCache> cache;
  // Rows of `cache` before the prompt's; their tokens are unknown.
  std::int64_t unknown_rows = 0;
  nn::AdapterUse adapter = {};              // The rows of `cache` were made with it.
  int max_kv_size = 0;                      // For a new cache, see models::CacheOptions.
  int kv_bits = kernels::kUnquantizedBits;  // Likewise.
  // Sequences with an equal key share rows, see cache::PrefixCache; empty: shares with none.
  std::string prefix_key;
  int max_tokens = 256;
  std::vector<std::int32_t> stop_tokens;  // Each ends the answer and is not part of it.
  sample::SamplingOptions sampling;
  // See sample::NamedTokens.
  std::vector<std::int32_t> xtc_exempt;
  std::vector<std::int32_t> dry_breakers;
  Speculation speculation;
  std::vector<std::int32_t> prediction;  // Prompt lookup copies from it, too.
  int priority = 0;                      // Higher first, see scheduler.h.
  std::string user;                      // Users share the engine fairly.
  // The answer ends then, with what it has.
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
  std::unique_ptr<sample::TokenMask> mask;  // Tokens that may come next; null: all.
  int logprobs = -1;  // Number of best alternatives per token; -1: no log-probabilities.
};

// The request's tokens with a special role, for the sampler.
inline sample::NamedTokens named_tokens(const SequenceRequest& request) {
  return {
      .xtc_exempt = request.xtc_exempt,
      .dry_breakers = request.dry_breakers,
      .stop_tokens = request.stop_tokens,
      .prompt_size = request.prompt.size(),
  };
}

struct GeneratedToken {
  std::int32_t id = 0;
  double logprob = 0.0;                              // From raw logits.
  std::vector<std::pair<std::int32_t, double>> top;  // Best first.
  bool drafted = false;                              // A draft had it.
};

enum class EndReason : std::uint8_t {
  kStopToken,  // A stop token was chosen.
  kStopped,    // The listener stopped it.
  kComplete,   // The mask lets nothing follow.
  kLength,     // max_tokens, or the model's context is full.
  kCancelled,
  kDeadline,
  kFailed,
};

struct SequenceTiming {
  double queue_s = 0.0;       // From `add` to the first prompt token.
  double prompt_s = 0.0;      // Until the first token of the answer.
  double generation_s = 0.0;  // Until the last token.
};

struct SequenceEnd {
  EndReason reason = EndReason::kFailed;
  std::exception_ptr error;       // kFailed only.
  std::int32_t last_choice = -1;  // The token chosen last, a stop token too; -1: none.
  // Prompt and answer. The cache holds rows of the first `cache->offset() - unknown_rows` tokens.
  std::vector<std::int32_t> context;
  std::optional<cache::SequenceCache> cache;
  int cached_tokens = 0;  // Prompt tokens whose rows were known.
  int preemptions = 0;    // Times that it gave its rows up.
  SequenceTiming timing;
  DrafterKind drafter = DrafterKind::kNone;  // The drafter it used.
  SpeculationCounts speculation;
};

// Called on the generator's thread, in order; must not block or call the generator.
class Listener {
 public:
  Listener() = default;
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  virtual ~Listener() = default;

  // Reports the number of prompt tokens with rows in the cache.
  virtual void on_prompt(int /*done*/, int /*total*/) {}

  // Returns false to end the answer.
  virtual bool on_token(const GeneratedToken& token) = 0;
  // Must not throw: the sequence has ended, but others of its pass have not.
  virtual void on_end(SequenceEnd end) noexcept = 0;
};

}  // namespace saker::generate
