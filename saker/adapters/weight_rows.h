// SPDX-License-Identifier: Apache-2.0
#pragma once

// Weights row by row, in float32: the base's, read back from their packed form, and a low-rank
// pair's change.

#include "saker/adapters/adapter_source.h"
#include "saker/nn/weights/weights.h"

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

namespace saker::adapters {

// Rows that are read back together.
inline constexpr int kWeightRows = 512;

// Rows [first, first + count) of the module's weight, [count, inputs].
std::vector<float> base_rows(const nn::Module& module, int first, int count);

// The module's bias; zeros if it has none.
std::vector<float> base_bias(const nn::Module& module);

// Calls body(row, values) for all rows of the module's weight, in blocks on all threads.
using RowBody = std::function<void(int row, std::span<const float> values)>;
void each_base_row(const nn::Module& module, const RowBody& body);

// The rows of `up down`, for a weight [outputs, inputs]; for an embedding `down up^T`, [V, H].
class LowRankRows {
 public:
  explicit LowRankRows(const LowRank& low_rank);

  // values += factor * (row `row`).
  void add(int row, float factor, std::span<float> values) const;

 private:
  std::size_t rank_;
  std::vector<float> left_;   // [rows, R]
  std::vector<float> right_;  // [R, columns]
};

}  // namespace saker::adapters
