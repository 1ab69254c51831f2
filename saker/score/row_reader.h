// SPDX-License-Identifier: Apache-2.0
#pragma once

// From rows of logits to the scores of the sequences that a row belongs to.

#include "saker/score/token_scores.h"

#include <cstdint>
#include <span>
#include <vector>

namespace saker::score {

// The logits after token `row` of these jobs, which agree up to there.
struct WantedRow {
  std::int32_t pass_row = 0;  // Of the pass's hidden rows.
  int row = 0;
  std::span<const int> jobs;
};

class RowReader {
 public:
  explicit RowReader(std::span<const ScoreJob> jobs);

  // Whether anything of this job is read from the logits after token `row`.
  bool wants(int job, int row) const;

  // Takes logits [rows, vocab_size], on the kernels' threads.
  void read(std::span<const WantedRow> rows, std::span<const float> logits);

  std::vector<TokenScores> finish();

 private:
  void read_row(const WantedRow& row, std::span<const float> logits);

  std::span<const ScoreJob> jobs_;
  std::vector<TokenScores> scores_;
  std::vector<std::vector<std::uint8_t>> greedy_;  // Per job and token.
};

}  // namespace saker::score
