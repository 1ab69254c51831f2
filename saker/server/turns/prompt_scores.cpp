// SPDX-License-Identifier: Apache-2.0
#include "saker/server/turns/prompt_scores.h"

#include "saker/base/error.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <variant>

namespace saker::server {
namespace {

using Top = std::vector<std::pair<std::int32_t, double>>;

// The best log-probabilities of a row of logits.
Top best_of(std::span<const float> logits, int most) {
  const float highest = *std::ranges::max_element(logits);
  double sum = 0.0;
  for (const float logit : logits) {
    sum += std::exp(static_cast<double>(logit) - highest);
  }
  const double total = highest + std::log(sum);
  std::vector<std::int32_t> ids(logits.size());
  for (std::size_t i = 0; i < ids.size(); ++i) {
    ids[i] = static_cast<std::int32_t>(i);
  }
  const auto count = std::min(logits.size(), static_cast<std::size_t>(most));
  const auto middle = ids.begin() + static_cast<std::ptrdiff_t>(count);
  std::partial_sort(ids.begin(), middle, ids.end(), [&](std::int32_t left, std::int32_t right) {
    const float a = logits[static_cast<std::size_t>(left)];
    const float b = logits[static_cast<std::size_t>(right)];
    return a != b ? a > b : left < right;
  });
  Top top;
  for (auto id = ids.begin(); id != middle; ++id) {
    top.emplace_back(*id, logits[static_cast<std::size_t>(*id)] - total);
  }
  return top;
}

}  // namespace

std::vector<PromptScores> score_prompts(
    engine::LanguageModel& model, const std::vector<std::vector<std::int32_t>>& prompts, int most
) {
  std::vector<PromptScores> scores(prompts.size());
  std::vector<engine::ScoreRequest> requests(prompts.size());
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    scores[i].tokens = prompts[i];
    scores[i].top.resize(prompts[i].size());
    requests[i].tokens = prompts[i];
    if (most > 0) {
      // Each row has a place of its own, so that threads need no lock.
      requests[i].take_logits = [&top = scores[i].top, most](
                                    std::size_t, std::size_t row, std::span<const float> logits
                                ) {
        if (row + 1 < top.size()) {
          top[row + 1] = best_of(logits, most);
        }
      };
    }
  }
  std::vector<engine::ScoreOutcome> outcomes = model.score(requests);
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    if (const auto* error = std::get_if<Error>(&outcomes[i])) {
      throw Error(*error);
    }
    scores[i].logprobs = std::get<engine::ScoreResult>(outcomes[i]).views.at(0).logprobs;
  }
  return scores;
}

}  // namespace saker::server
