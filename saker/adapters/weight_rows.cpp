// SPDX-License-Identifier: Apache-2.0
#include "saker/adapters/weight_rows.h"

#include "saker/adapters/source_parts.h"
#include "saker/kernels/cpu/runtime/thread_pool.h"
#include "saker/kernels/mx.h"

#include <algorithm>

namespace saker::adapters {

std::vector<float> base_rows(const nn::Module& module, int first, int count) {
  const auto rows = module.weight->dequantized_rows(module.first_row + first, count);
  mx::eval(rows);
  return {rows.data<float>(), rows.data<float>() + rows.size()};
}

std::vector<float> base_bias(const nn::Module& module) {
  std::vector<float> result(static_cast<std::size_t>(module.outputs), 0.0F);
  if (module.bias) {
    const auto bias = mx::contiguous(*module.bias);
    mx::eval(bias);
    std::copy_n(bias.data<float>(), result.size(), result.begin());
  }
  return result;
}

void each_base_row(const nn::Module& module, const RowBody& body) {
  const auto columns = static_cast<std::size_t>(module.inputs);
  for (int first = 0; first < module.outputs; first += kWeightRows) {
    const int count = std::min(kWeightRows, module.outputs - first);
    const auto values = base_rows(module, first, count);
    kernels::thread_pool().run(count, [&](int i) {
      body(first + i, std::span(values).subspan(static_cast<std::size_t>(i) * columns, columns));
    });
  }
}

LowRankRows::LowRankRows(const LowRank& low_rank)
    : rank_(static_cast<std::size_t>(low_rank.up.shape.at(1))),
      left_(to_floats(low_rank.embedding ? low_rank.down : low_rank.up)),
      right_(to_floats(low_rank.embedding ? transposed(low_rank.up) : low_rank.down)) {}

void LowRankRows::add(int row, float factor, std::span<float> values) const {
  const float* left = left_.data() + static_cast<std::size_t>(row) * rank_;
  for (std::size_t r = 0; r < rank_; ++r) {
    const float weight = factor * left[r];
    const float* right = right_.data() + r * values.size();
    for (std::size_t k = 0; k < values.size(); ++k) {
      values[k] += weight * right[k];
    }
  }
}

}  // namespace saker::adapters
