// SPDX-License-Identifier: Apache-2.0
#include "saker/score/token_scores.h"

#include "saker/base/error.h"
#include "saker/base/log_prob.h"

#include <algorithm>
#include <cstddef>

namespace saker::score {

namespace {

void check(
    const models::ModelInfo& info, std::span<const std::int32_t> tokens, const ScorePlan& plan
) {
  require(
      !tokens.empty(),
      ErrorCode::kInvalidArgument,
      "there is nothing to score: expected at least one token"
  );
  require(
      info.context_length <= 0 || static_cast<std::int64_t>(tokens.size()) <= info.context_length,
      ErrorCode::kInvalidArgument,
      "the sequence has {} tokens, but the model's context is {} tokens long",
      tokens.size(),
      info.context_length
  );
  for (const std::int32_t id : tokens) {
    require(
        id >= 0 && id < info.vocab_size,
        ErrorCode::kInvalidArgument,
        "token id {} is out of range, expected 0 to {}",
        id,
        info.vocab_size - 1
    );
  }
  require(
      plan.prefill_step >= 1,
      ErrorCode::kInvalidArgument,
      "prefill_step: got {}, expected 1 or more",
      plan.prefill_step
  );
  require(
      plan.top_k >= 0, ErrorCode::kInvalidArgument, "top_k: got {}, expected 0 or more", plan.top_k
  );
}

// Takes rows of logits in order; row r is that after token r.
class Scorer {
 public:
  Scorer(std::span<const std::int32_t> tokens, const ScorePlan& plan)
      : tokens_(tokens), plan_(plan), first_scored_(std::max(plan.first_scored, 1)) {
    scores_.logprobs.resize(tokens.size());
  }

  // Whether anything is read from this row.
  bool wants(int row) const {
    const int next = row + 1;
    return next == static_cast<int>(tokens_.size()) ? plan_.top_k > 0 : next >= first_scored_;
  }

  bool wants_any(int row, int count) const {
    // Wanted rows follow each other, but for the last row of the sequence.
    const int last = row + count - 1;
    return wants(row) || wants(last) || (count > 1 && wants(last - 1));
  }

  // Takes those of the rows from `first` on that are wanted.
  void take_wanted(int first, std::span<const float> rows, int vocab_size) {
    const auto width = static_cast<std::size_t>(vocab_size);
    for (int row = first; !rows.empty(); ++row, rows = rows.subspan(width)) {
      if (wants(row)) {
        take(row, rows.first(width));
      }
    }
  }

  void take(int row, std::span<const float> logits) {
    const auto next = static_cast<std::size_t>(row) + 1;
    if (next == tokens_.size()) {
      scores_.next = next_distribution(logits, plan_.top_k);
      return;
    }
    const std::int32_t id = tokens_[next];
    const double logprob = log_prob(logits, id, log_sum_exp(logits));
    scores_.logprobs[next] = logprob;
    scores_.sum += logprob;
    scores_.is_greedy = scores_.is_greedy && best_token(logits) == id;
    ++scored_;
  }

  TokenScores finish() {
    scores_.mean = scored_ > 0 ? scores_.sum / scored_ : 0.0;
    return std::move(scores_);
  }

 private:
  std::span<const std::int32_t> tokens_;
  const ScorePlan& plan_;
  int first_scored_;
  int scored_ = 0;
  TokenScores scores_;
};

}  // namespace

TokenScores score_tokens(
    const models::Model& model, std::span<const std::int32_t> tokens, const ScorePlan& plan
) {
  const models::ModelInfo& info = model.info();
  check(info, tokens, plan);
  Scorer scorer(tokens, plan);
  cache::SequenceCache cache = model.make_cache({.kv_bits = plan.kv_bits});
  const int total = static_cast<int>(tokens.size());
  for (int first = 0; first < total; first += plan.prefill_step) {
    const int count = std::min(plan.prefill_step, total - first);
    nn::ForwardContext context({{&cache, count}});
    const mx::array hidden =
        model.forward(mx::array(tokens.data() + first, {count}, mx::int32), context);
    mx::eval(hidden);
    for (int row = 0; row < count; row += kScoreRows) {
      const int rows = std::min(kScoreRows, count - row);
      if (!scorer.wants_any(first + row, rows)) {
        continue;
      }
      mx::array logits =
          model.unembed(mx::slice(hidden, {row, 0}, {row + rows, hidden.shape(1)}), {});
      logits = mx::contiguous(mx::astype(logits, mx::float32));
      mx::eval(logits);
      scorer.take_wanted(first + row, {logits.data<float>(), logits.size()}, info.vocab_size);
    }
  }
  return scorer.finish();
}

}  // namespace saker::score
