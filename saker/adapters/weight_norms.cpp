// SPDX-License-Identifier: Apache-2.0
#include "saker/adapters/weight_norms.h"

#include "saker/adapters/source_parts.h"
#include "saker/adapters/weight_rows.h"
#include "saker/base/error.h"
#include "saker/load/files/safetensors.h"

#include <algorithm>
#include <cmath>
#include <span>

namespace saker::adapters {

namespace {

double sum_of_squares(std::span<const float> values) {
  double squares = 0.0;
  for (const float value : values) {
    squares += static_cast<double>(value) * static_cast<double>(value);
  }
  return squares;
}

// Squared norms of the adapted weight's rows.
std::vector<double> row_squares(const nn::Module& module, const LowRank& low_rank) {
  const LowRankRows change(low_rank);
  std::vector<double> squares(static_cast<std::size_t>(module.outputs));
  each_base_row(module, [&](int row, std::span<const float> weights) {
    std::vector<float> adapted(weights.begin(), weights.end());
    change.add(row, low_rank.scale, adapted);
    squares[static_cast<std::size_t>(row)] = sum_of_squares(adapted);
  });
  return squares;
}

// Squared norms of its columns, added in the order of rows.
std::vector<double> column_squares(const nn::Module& module, const LowRank& low_rank) {
  const LowRankRows change(low_rank);
  const auto columns = static_cast<std::size_t>(module.inputs);
  std::vector<double> squares(columns);
  for (int first = 0; first < module.outputs; first += kWeightRows) {
    const int count = std::min(kWeightRows, module.outputs - first);
    auto values = base_rows(module, first, count);
    for (int i = 0; i < count; ++i) {
      const auto row = std::span(values).subspan(static_cast<std::size_t>(i) * columns, columns);
      change.add(first + i, low_rank.scale, row);
      for (std::size_t k = 0; k < columns; ++k) {
        squares[k] += static_cast<double>(row[k]) * static_cast<double>(row[k]);
      }
    }
  }
  return squares;
}

}  // namespace

std::vector<float> magnitude_ratios(
    const nn::Module& module, const LowRank& low_rank, const std::string& name
) {
  const auto magnitudes = to_floats(*low_rank.magnitude);
  const bool by_column = low_rank.embedding && !low_rank.by_token;
  const auto expected = static_cast<std::size_t>(by_column ? module.inputs : module.outputs);
  require(
      magnitudes.size() == expected,
      ErrorCode::kInvalidArgument,
      "[{}] {} magnitudes, the model has {} {}",
      name,
      magnitudes.size(),
      expected,
      low_rank.by_token ? "tokens" : "outputs"
  );
  const auto squares = by_column ? column_squares(module, low_rank) : row_squares(module, low_rank);
  std::vector<float> ratios(magnitudes.size());
  for (std::size_t i = 0; i < ratios.size(); ++i) {
    ratios[i] = static_cast<float>(static_cast<double>(magnitudes[i]) / std::sqrt(squares[i]));
  }
  require(
      std::ranges::all_of(ratios, [](float ratio) { return std::isfinite(ratio); }),
      ErrorCode::kCorruptData,
      "[{}] an output's adapted weights are all 0",
      name
  );
  return ratios;
}

std::vector<float> norm_gains(
    const nn::Module& module, const Tensor& weight, const std::string& name
) {
  const auto values = to_floats(checked_tensor(name, weight, 1));
  require(
      values.size() == static_cast<std::size_t>(module.inputs),
      ErrorCode::kInvalidArgument,
      "[{}] the adapter's norm has {} factors, the model's {}",
      name,
      values.size(),
      module.inputs
  );
  const auto factors = mx::contiguous(module.norm->factors);
  mx::eval(factors);
  const std::span<const float> base(factors.data<float>(), values.size());
  std::vector<float> gains;
  while (gains.size() < static_cast<std::size_t>(module.outputs)) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const float factor = values[i] + module.norm->offset;
      const double gain = factor == base[i]
                              ? 0.0
                              : static_cast<double>(factor) / static_cast<double>(base[i]) - 1.0;
      require(
          std::isfinite(static_cast<float>(gain)),
          ErrorCode::kUnsupported,
          "[{}] factor {} becomes {}, but the base's is 0",
          name,
          i,
          factor
      );
      gains.push_back(static_cast<float>(gain));
    }
  }
  return gains;
}

bool equals_base(const nn::Module& module, const Tensor& weight, const std::string& name) {
  const Tensor checked = checked_tensor(name, weight, 2);
  require(
      checked.shape == std::vector<std::int64_t>{module.outputs, module.inputs},
      ErrorCode::kInvalidArgument,
      "[{}] the adapter's weight has shape {}, the model's [{}, {}]",
      name,
      shape_text(checked.shape),
      module.outputs,
      module.inputs
  );
  const auto values = to_floats(checked);
  std::vector<char> same(static_cast<std::size_t>(module.outputs));
  each_base_row(module, [&](int row, std::span<const float> weights) {
    const auto index = static_cast<std::size_t>(row);
    same[index] = std::ranges::equal(
                      weights, std::span(values).subspan(index * weights.size(), weights.size())
                  )
                      ? 1
                      : 0;
  });
  return std::ranges::all_of(same, [](char equal) { return equal != 0; });
}

bool shares_weight(const nn::Module& one, const nn::Module& other) {
  return one.weight->shared_storage() == other.weight->shared_storage();
}

}  // namespace saker::adapters
