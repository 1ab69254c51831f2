// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a batch generator is asked to run and what it reports: token ids in, token ids out. Plain
// values.

#include "saker/cache/sequence_cache.h"
#include "saker/nn/adapter.h"
#include "saker/sample/options.h"

#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace saker::generate {

// Where draft tokens come from, see drafter.h.
enum class DrafterKind : std::uint8_t { kNone, kPromptLookup, kDraftModel, kMtp, kDflash };

// As requests and statistics spell it.
constexpr std::string_view drafter_name(DrafterKind kind) {
  constexpr std::string_view kNames[] = {"none", "prompt-lookup", "draft", "mtp", "dflash"};
  return kNames[static_cast<std::size_t>(kind)];
}

inline constexpr int kAutoDepth = -1;
inline constexpr int kMaxDraftDepth = 64;

// Which draft tokens an answer takes.
enum class Acceptance : std::uint8_t {
  kCoupled,  // Those that plain decoding chooses: drafts change what an answer costs, nothing else.
  kRejection,  // More where tokens are sampled, by sample/acceptance.h: the answer has the same
               // distribution, but which one it is depends on what was drafted when.
};

struct Speculation {
  DrafterKind drafter = DrafterKind::kNone;
  int depth = kAutoDepth;  // Draft tokens of one round at most; auto: as many as pay.
  Acceptance acceptance = Acceptance::kCoupled;
};

struct SpeculationCounts {
  int rounds = 0;    // Passes that checked at least one draft token.
  int drafted = 0;   // Draft tokens checked,
  int accepted = 0;  // and those of them that the answer has.
};

struct SequenceRequest {
  std::vector<std::int32_t> prompt;
  // Already holds the rows of the prompt's first tokens (fewer than all); none: a new cache.
  std::optional<cache::SequenceCache> cache;
  // Rows of `cache` that come before the prompt's: their tokens are not known.
  std::int64_t unknown_rows = 0;
  nn::AdapterUse adapter = {};              // Rows of `cache` were made with it.
  int max_kv_size = 0;                      // Of a new cache, see models::CacheOptions.
  int kv_bits = kernels::kUnquantizedBits;  // The same.
  // Rows are shared with other sequences of the same key, see cache::PrefixCache; empty: with none.
  std::string prefix_key;
  int max_tokens = 256;
  std::vector<std::int32_t> stop_tokens;  // End the answer and are not part of it.
  sample::SamplingOptions sampling;
  // See sample::NamedTokens.
  std::vector<std::int32_t> xtc_exempt;
  std::vector<std::int32_t> dry_breakers;
  Speculation speculation;
  int logprobs = -1;  // Best alternatives reported per token; -1: no log-probabilities at all.
};

// For the sampler of a request.
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
};

enum class EndReason : std::uint8_t {
  kStopToken,  // A stop token was chosen.
  kStopped,    // The listener wanted no more.
  kLength,     // max_tokens, or the model's context is full.
  kCancelled,
  kFailed,
};

struct SequenceTiming {
  double queue_s = 0.0;       // From `add` to the first prompt row.
  double prompt_s = 0.0;      // From there to the first token.
  double generation_s = 0.0;  // From there to the last token.
};

struct SequenceEnd {
  EndReason reason = EndReason::kFailed;
  std::exception_ptr error;           // kFailed only.
  std::vector<std::int32_t> context;  // Prompt and answer; the cache holds the rows of the first
                                      // `cache->offset() - unknown_rows` of them.
  std::optional<cache::SequenceCache> cache;
  int cached_tokens = 0;  // Of the prompt, not run since their rows were known.
  SequenceTiming timing;
  DrafterKind drafter = DrafterKind::kNone;  // What drafted for it.
  SpeculationCounts speculation;
};

// Called on the generator's thread, in order; must not block or call the generator.
class Listener {
 public:
  Listener() = default;
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  virtual ~Listener() = default;

  // Rows of the prompt that are in the cache.
  virtual void on_prompt(int /*done*/, int /*total*/) {}

  // Returns whether the answer goes on.
  virtual bool on_token(const GeneratedToken& token) = 0;
  // Throws nothing: the sequence has ended, and others of its pass have not.
  virtual void on_end(SequenceEnd end) noexcept = 0;
};

}  // namespace saker::generate
