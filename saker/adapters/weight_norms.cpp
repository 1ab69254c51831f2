// SPDX-License-Identifier: Apache-2.0
#include "saker/adapters/weight_norms.h"

#include "saker/adapters/source_parts.h"
#include "saker/adapters/weight_rows.h"
#include "saker/base/error.h"
#include "saker/load/safetensors.h"

#include <algorithm>
#include <cmath>
#include <span>

namespace saker::adapters {

std::vector<float> magnitude_ratios(
    const nn::Module& module, const LowRank& low_rank, const std::string& name
) {
  const auto magnitudes = to_floats(*low_rank.magnitude);
  require(
      magnitudes.size() == static_cast<std::size_t>(module.outputs),
      ErrorCode::kInvalidArgument,
      "[{}] {} magnitudes, the model has {} outputs",
      name,
      magnitudes.size(),
      module.outputs
  );
  const LowRankRows change(low_rank);
  std::vector<float> ratios(magnitudes.size());
  each_base_row(module, [&](int row, std::span<const float> weights) {
    const auto index = static_cast<std::size_t>(row);
    std::vector<float> adapted(weights.begin(), weights.end());
    change.add(row, low_rank.scale, adapted);
    double squares = 0.0;
    for (const float value : adapted) {
      squares += static_cast<double>(value) * static_cast<double>(value);
    }
    ratios[index] = static_cast<float>(static_cast<double>(magnitudes[index]) / std::sqrt(squares));
  });
  require(
      std::ranges::all_of(ratios, [](float ratio) { return std::isfinite(ratio); }),
      ErrorCode::kCorruptData,
      "[{}] an output's adapted weights are all 0",
      name
  );
  return ratios;
}

bool equals_base(const nn::Module& module, const Tensor& weight, const std::string& name) {
  const Tensor checked = checked_tensor(name, weight, 2);
  require(
      checked.shape == std::vector<std::int64_t>{module.outputs, module.inputs},
      ErrorCode::kInvalidArgument,
      "[{}] the adapter's weight has shape {}, the model's [{}, {}]",
      name,
      load::shape_text(checked.shape),
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
