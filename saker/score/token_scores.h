// SPDX-License-Identifier: Apache-2.0
#pragma once

// Teacher-forced log-probabilities: the probability of each token of a given sequence after the
// tokens before it. Many sequences, of the base and of adapters, run in one pass. Common beginnings
// run once, and so do the layers below the first one that an adapter changes. A sequence's scores
// have the same bits alone and in any batch.
//
// Memory is bounded for any number of sequences, length and vocabulary: one pass's activations, the
// caches of the running sequences and 24 MiB of logits. Only a row's log-probabilities and
// candidates are kept, unless a job takes the logits itself. Sums are float64. REQUIRES: called on
// the thread that owns MLX.

#include "saker/models/model.h"
#include "saker/nn/adapter.h"
#include "saker/score/next_distribution.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace saker::score {

// Takes the logits [vocab_size] after token `row`. Called on the kernels' threads, several at a
// time; each row comes once.
using TakeLogits = std::function<void(int row, std::span<const float> logits)>;

struct ScoreJob {
  std::vector<std::int32_t> tokens;
  int first_scored =
      1;  // Tokens before this one are only seen. The first token of a sequence is never scored.
  int top_k = 0;  // > 0: the distribution after the last token.
  nn::AdapterUse adapter = {};
  TakeLogits take_logits = {};  // Empty, or gets the logits after every token, the last included.

  // True if the last token runs, and is not only scored.
  bool runs_last() const { return top_k > 0 || take_logits != nullptr; }
};

struct ScoreOptions {
  int prefill_step = 512;                   // Tokens per pass.
  int kv_bits = kernels::kUnquantizedBits;  // See models::CacheOptions.
  // Approximate limit for the caches of all running sequences; a single sequence may exceed it.
  std::size_t cache_bytes = std::size_t{512} << 20;
  // Called before each pass: the thread may do other work then. Returns the tokens that the pass may
  // have. Empty: `prefill_step`, always.
  std::function<int()> before_pass = {};
};

struct TokenScores {
  std::vector<std::optional<double>> logprobs;  // One per token; none where not scored.
  double sum = 0.0;
  double mean = 0.0;      // 0 without scored tokens.
  bool is_greedy = true;  // Every scored token was the most probable one (ties: lower id).
  std::optional<NextDistribution> next;
};

// Most tokens of the job's sequence: the context, and one more if the last is only scored.
std::int64_t most_tokens(const models::ModelInfo& info, const ScoreJob& job);

// Throws kInvalidArgument for an empty or too long sequence and for ids out of range.
void check_job(const models::ModelInfo& info, const ScoreJob& job);

// The scores of each job. Throws as `check_job` for any of them, kInvalidArgument for options out
// of range, kCapacity and std::bad_alloc without memory; then there are no results.
std::vector<TokenScores> score_batch(
    const models::Model& model, std::span<const ScoreJob> jobs, const ScoreOptions& options
);

// Maximum number of logit rows that exist at a time.
int logit_rows(int vocab_size);

}  // namespace saker::score
