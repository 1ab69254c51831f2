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
  if (most == 0) {
    return {};
  }
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

int rank_of(std::span<const float> logits, std::int32_t id) {
  const float own = logits[static_cast<std::size_t>(id)];
  return static_cast<int>(std::ranges::count_if(logits, [own](float logit) { return logit >= own; })
  );
}

}  // namespace

std::vector<PromptScores> score_prompts(
    engine::LanguageModel& model,
    const std::vector<std::vector<std::int32_t>>& prompts,
    const PromptScoring& wanted
) {
  std::vector<PromptScores> scores(prompts.size());
  std::vector<engine::ScoreRequest> requests(prompts.size());
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    PromptScores& one = scores[i];
    one.tokens = prompts[i];
    one.top.resize(prompts[i].size());
    one.ranks.resize(prompts[i].size());
    requests[i].tokens = prompts[i];
    requests[i].stop = wanted.stop;
    if (!wanted.adapter.empty()) {
      requests[i].views = {{.key = "ft", .adapter = wanted.adapter}};
    }
    if (wanted.top > 0 || wanted.ranks) {
      // Each row has a place of its own, so that threads need no lock.
      requests[i].take_logits =
          [&one, wanted](std::size_t, std::size_t row, std::span<const float> logits) {
            const std::size_t at = row + 1;  // The token that these logits are about.
            if (at < one.tokens.size()) {
              one.top[at] = best_of(logits, wanted.top);
              one.ranks[at] = wanted.ranks ? rank_of(logits, one.tokens[at]) : 0;
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
