// SPDX-License-Identifier: Apache-2.0
#pragma once

// Teacher-forced log-probabilities: how probable each token of a given sequence was after the
// tokens before it. Many sequences, of the base and of adapters, run in one pass; what sequences
// begin with in common runs once, and so do the layers below the first that an adapter changes. A
// sequence's scores have the same bits alone and in any batch.
//
// Memory is bounded: rows of one pass, caches of the sequences under way and 24 MiB of logits exist
// at a time, whatever the number of sequences, their length and the vocabulary; of a row only
// its log-probabilities and candidates are kept, unless a job takes the logits itself. Sums are
// float64. REQUIRES: called on the
// thread that owns MLX.

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
  TakeLogits take_logits = {};  // Empty, or gets those after every token, the last one too.

  // Whether the last token is run, and not only scored.
  bool runs_last() const { return top_k > 0 || take_logits != nullptr; }
};

struct ScoreOptions {
  int prefill_step = 512;                   // Rows of one pass.
  int kv_bits = kernels::kUnquantizedBits;  // See models::CacheOptions.
  // Caches of all sequences under way, about; one sequence may have more.
  std::size_t cache_bytes = std::size_t{512} << 20;
};

struct TokenScores {
  std::vector<std::optional<double>> logprobs;  // One per token; none where not scored.
  double sum = 0.0;
  double mean = 0.0;      // 0 without scored tokens.
  bool is_greedy = true;  // Every scored token was the most probable one, lower ids first.
  std::optional<NextDistribution> next;
};

// Tokens that the job's sequence may have: as many as the context, and a last one where that is
// only scored and not run.
std::int64_t most_tokens(const models::ModelInfo& info, const ScoreJob& job);

// Throws kInvalidArgument for an empty or too long sequence and for ids out of range.
void check_job(const models::ModelInfo& info, const ScoreJob& job);

// The scores of each job. Throws as `check_job` does for any of them, kInvalidArgument for options
// out of range, kCapacity and std::bad_alloc without memory; there are no results then.
std::vector<TokenScores> score_batch(
    const models::Model& model, std::span<const ScoreJob> jobs, const ScoreOptions& options
);

// Rows of logits that exist at a time.
int logit_rows(int vocab_size);

}  // namespace saker::score
