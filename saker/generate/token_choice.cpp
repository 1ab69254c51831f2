// SPDX-License-Identifier: Apache-2.0
#include "saker/generate/token_choice.h"

#include "saker/base/log_prob.h"
#include "saker/sample/token_mask.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace saker::generate {
namespace {

class Chooser {
 public:
  Chooser(RunningSequence& sequence, const Speculator::Draft* draft, const models::ModelInfo& model)
      : sequence_(sequence), draft_(draft), model_(model), generated_(sequence.generated) {}

  std::size_t draft_size() const { return draft_ == nullptr ? 0 : draft_->tokens.size(); }

  TokenChoice choose(std::size_t row, std::span<float> logits) {
    const SequenceRequest& request = sequence_.request;
    TokenChoice choice;
    std::span<float> masked = logits;
    std::vector<float> copy;
    if (request.logprobs >= 0) {
      copy.assign(logits.begin(), logits.end());
      masked = copy;
    }
    if (request.mask && !sample::apply_mask(sequence_.next_mask(logits.size()), masked)) {
      choice.end = EndReason::kComplete;
      return choice;
    }
    GeneratedToken& token = choice.token.emplace();
    token.id = pick(row, masked);
    choice.as_drafted = row < draft_size() && draft_->tokens[row] == token.id;
    token.drafted = choice.as_drafted;
    if (request.logprobs >= 0) {
      const double log_sum = log_sum_exp(logits);
      token.logprob = log_prob(logits, token.id, log_sum);
      token.top = top_tokens(logits, request.logprobs, log_sum);
    }
    add(choice);
    return choice;
  }

 private:
  std::int32_t pick(std::size_t row, std::span<float> logits) {
    const std::int64_t position = sequence_.position();
    sample::Sampler& sampler = sequence_.sampler;
    if (sequence_.request.speculation.acceptance == Acceptance::kCoupled || row >= draft_size()) {
      return sampler.choose(logits, sequence_.context, position);
    }
    const std::int32_t drafted = draft_->tokens[row];
    return sampler.accept_or_resample(
        sampler.distribution(logits, sequence_.context, position),
        row < draft_->chances.size() ? draft_->chances[row] : sample::Distribution{{1.0, drafted}},
        drafted,
        position
    );
  }

  // Adds the token to the answer, unless it stops it.
  void add(TokenChoice& choice) {
    const SequenceRequest& request = sequence_.request;
    const std::int32_t id = choice.token->id;
    ++generated_;
    if (std::ranges::find(request.stop_tokens, id) != request.stop_tokens.end()) {
      choice.end = EndReason::kStopToken;
      return;
    }
    const std::int64_t position = sequence_.position();
    const std::int64_t limit = model_.context_length;
    choice.in_answer = true;
    sequence_.context.push_back(id);
    sequence_.drop_next_mask();
    if (request.mask && !request.mask->accept(id)) {
      choice.end = EndReason::kComplete;
    } else if (generated_ == request.max_tokens || (limit > 0 && position >= limit)) {
      choice.end = EndReason::kLength;
    }
  }

  RunningSequence& sequence_;
  const Speculator::Draft* draft_;
  const models::ModelInfo& model_;
  int generated_;
};

}  // namespace

TokenChoices choose_tokens(
    RunningSequence& sequence,
    const Speculator::Draft* draft,
    const RowOf& row_of,
    const models::ModelInfo& model
) noexcept {
  TokenChoices choices;
  try {
    Chooser chooser(sequence, draft, model);
    choices.chosen.reserve(chooser.draft_size() + 1);
    for (std::size_t row = 0; row <= chooser.draft_size(); ++row) {
      const TokenChoice& choice =
          choices.chosen.emplace_back(chooser.choose(row, row_of(static_cast<int>(row))));
      if (choice.end || !choice.as_drafted) {
        break;
      }
    }
  } catch (...) {
    choices.error = std::current_exception();
  }
  return choices;
}

}  // namespace saker::generate
