// SPDX-License-Identifier: Apache-2.0
#include "saker/score/row_reader.h"

#include "saker/base/log_prob.h"
#include "saker/kernels/cpu/runtime/thread_pool.h"

#include <algorithm>
#include <utility>

namespace saker::score {

RowReader::RowReader(std::span<const ScoreJob> jobs) : jobs_(jobs), scores_(jobs.size()) {
  greedy_.reserve(jobs.size());
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    scores_[i].logprobs.resize(jobs[i].tokens.size());
    greedy_.emplace_back(jobs[i].tokens.size(), 1);
  }
}

bool RowReader::wants(int job, int row) const {
  const ScoreJob& wanted = jobs_[static_cast<std::size_t>(job)];
  const int next = row + 1;
  if (wanted.take_logits) {
    return true;
  }
  return next == static_cast<int>(wanted.tokens.size()) ? wanted.top_k > 0
                                                        : next >= std::max(wanted.first_scored, 1);
}

void RowReader::read(std::span<const WantedRow> rows, std::span<const float> logits) {
  const std::size_t width = logits.size() / rows.size();
  kernels::thread_pool().run(static_cast<int>(rows.size()), [&](int tile) {
    const auto index = static_cast<std::size_t>(tile);
    read_row(rows[index], logits.subspan(index * width, width));
  });
}

void RowReader::read_row(const WantedRow& row, std::span<const float> logits) {
  const double log_sum = log_sum_exp(logits);
  const std::int32_t best = best_token(logits);
  const auto next = static_cast<std::size_t>(row.row) + 1;
  for (const int job : row.jobs) {
    if (!wants(job, row.row)) {
      continue;
    }
    const auto index = static_cast<std::size_t>(job);
    const ScoreJob& wanted = jobs_[index];
    if (wanted.take_logits) {
      wanted.take_logits(row.row, logits);
    }
    if (next == wanted.tokens.size()) {
      if (wanted.top_k == 0) {
        continue;
      }
      scores_[index].next = next_distribution(logits, wanted.top_k, log_sum);
      continue;
    }
    if (static_cast<int>(next) < std::max(wanted.first_scored, 1)) {
      continue;
    }
    const std::int32_t id = wanted.tokens[next];
    scores_[index].logprobs[next] = log_prob(logits, id, log_sum);
    greedy_[index][next] = best == id ? 1 : 0;
  }
}

std::vector<TokenScores> RowReader::finish() {
  for (std::size_t i = 0; i < scores_.size(); ++i) {
    TokenScores& scores = scores_[i];
    int count = 0;
    for (const auto& logprob : scores.logprobs) {
      if (logprob) {
        scores.sum += *logprob;
        ++count;
      }
    }
    scores.mean = count > 0 ? scores.sum / count : 0.0;
    scores.is_greedy = std::ranges::all_of(greedy_[i], [](std::uint8_t x) { return x != 0; });
  }
  return std::move(scores_);
}

}  // namespace saker::score
