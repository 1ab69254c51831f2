// SPDX-License-Identifier: Apache-2.0
#pragma once

// Computes the token of reference_sample.h with a tenth of the work, or gives no answer.
//
// Exact numbers matter only between close competitors. Let d = x - max; then log p(x) is d minus a
// constant, except for rounding to float32, which is bounded. So the race runs on d / temperature +
// noise over all tokens that a filter could keep. Its winner is then checked against each filter:
// its rank and the mass above it, with bounds of their errors. If a filter removes the winner, a
// further race runs among the tokens above it, since filters keep the best. There is no answer if a
// bound does not decide, or after some races. The cases are one row in ten thousand, rows of
// neighbouring floats, and tiny temperatures.

#include "saker/sample/noise.h"
#include "saker/sample/options.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace saker::sample {

// A row of logits with the largest one of each block of kScanBlock. The row must outlive it.
class BlockedRow {
 public:
  explicit BlockedRow(std::span<const float> logits);

  // The largest logit; -infinity if none is a number.
  float max() const { return max_; }

  std::span<const float> maxima() const { return maxima_; }

  std::span<const float> block(std::size_t index) const;

  std::span<const float> logits() const { return logits_; }

 private:
  std::span<const float> logits_;
  std::vector<float> maxima_;
  float max_;
};

// Handles all filters but xtc. REQUIRES: the largest logit is finite.
std::optional<std::int32_t> choose_quickly(
    const SamplingOptions& options, const BlockedRow& row, const Noise& noise
);

}  // namespace saker::sample
