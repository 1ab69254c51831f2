// SPDX-License-Identifier: Apache-2.0
#pragma once

// The token of reference_sample.h from a tenth of the work, or nothing.
//
// Exact numbers matter between neighbours only. Let d = x - max; then log p(x) is d minus the same
// number for all tokens, but for its rounding to float32, which is bounded. So the race runs on
// d / temperature + noise over all tokens that a filter could keep, and its winner is then held
// against each filter: its place and the mass above it, with bounds of their errors. A winner that
// is out leaves the tokens above it to a further race, since filters keep the best. Where a bound
// does not decide, and after some races, there is no answer: about one row in ten thousand, rows
// whose logits are neighbours of each other, and tiny temperatures.

#include "saker/sample/noise.h"
#include "saker/sample/options.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace saker::sample {

// A row of logits with the largest of each block of kScanBlock. The row must outlive it.
class BlockedRow {
 public:
  explicit BlockedRow(std::span<const float> logits);

  // Of all; -infinity without a number.
  float max() const { return max_; }

  std::span<const float> maxima() const { return maxima_; }

  std::span<const float> block(std::size_t index) const;

  std::span<const float> logits() const { return logits_; }

 private:
  std::span<const float> logits_;
  std::vector<float> maxima_;
  float max_;
};

// All filters but xtc. The largest logit is finite.
std::optional<std::int32_t> choose_quickly(
    const SamplingOptions& options, const BlockedRow& row, const Noise& noise
);

}  // namespace saker::sample
