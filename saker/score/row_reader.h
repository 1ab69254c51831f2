// SPDX-License-Identifier: Apache-2.0
#pragma once

// Turns rows of logits into scores of all sequences that share a row.

#include "saker/score/token_scores.h"

#include <cstdint>
#include <span>
#include <vector>

namespace saker::score {

// The logits after token `row` of these jobs, whose sequences agree up to there.
struct WantedRow {
  std::int32_t pass_row = 0;  // Index in the pass's hidden states.
  int row = 0;
  std::span<const int> jobs;
};

class RowReader {
 public:
  explicit RowReader(std::span<const ScoreJob> jobs);

  // True if this job needs the logits after token `row`.
  bool wants(int job, int row) const;

  // Reads logits [rows, vocab_size], on the kernels' threads.
  void read(std::span<const WantedRow> rows, std::span<const float> logits);

  std::vector<TokenScores> finish();

 private:
  void read_row(const WantedRow& row, std::span<const float> logits);

  std::span<const ScoreJob> jobs_;
  std::vector<TokenScores> scores_;
  std::vector<std::vector<std::uint8_t>> greedy_;  // Per job and token.
};

}  // namespace saker::score
