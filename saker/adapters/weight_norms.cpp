// SPDX-License-Identifier: Apache-2.0
#include "saker/adapters/weight_norms.h"

#include "saker/adapters/source_parts.h"
#include "saker/base/error.h"
#include "saker/kernels/cpu/thread_pool.h"
#include "saker/load/safetensors.h"

#include <algorithm>
#include <cmath>
#include <span>

namespace saker::adapters {
namespace {

constexpr int kRowsAtOnce = 512;

// Calls body(row, values) for all rows of the module's weight, in order, some at a time on all
// threads.
template <typename Body>
void each_base_row(const nn::Module& module, Body body) {
  const auto columns = static_cast<std::size_t>(module.inputs);
  for (int first = 0; first < module.outputs; first += kRowsAtOnce) {
    const int count = std::min(kRowsAtOnce, module.outputs - first);
    const auto rows = module.weight->dequantized_rows(module.first_row + first, count);
    mx::eval(rows);
    const std::span<const float> values(
        rows.data<float>(), columns * static_cast<std::size_t>(count)
    );
    kernels::thread_pool().run(count, [&](int i) {
      body(first + i, values.subspan(static_cast<std::size_t>(i) * columns, columns));
    });
  }
}

}  // namespace

std::vector<float> magnitude_ratios(
    const nn::Module& module, const LowRank& low_rank, const std::string& name
) {
  const auto columns = static_cast<std::size_t>(module.inputs);
  const auto rank = static_cast<std::size_t>(low_rank.up.shape.at(1));
  const auto down = to_floats(low_rank.down);
  const auto up = to_floats(low_rank.up);
  const auto magnitudes = to_floats(*low_rank.magnitude);
  require(
      magnitudes.size() == static_cast<std::size_t>(module.outputs),
      ErrorCode::kInvalidArgument,
      "[{}] {} magnitudes, the model has {} outputs",
      name,
      magnitudes.size(),
      module.outputs
  );
  std::vector<float> ratios(magnitudes.size());
  each_base_row(module, [&](int row, std::span<const float> weights) {
    const auto index = static_cast<std::size_t>(row);
    std::vector<float> adapted(weights.begin(), weights.end());
    for (std::size_t r = 0; r < rank; ++r) {
      const float factor = low_rank.scale * up[index * rank + r];
      const float* from = down.data() + r * columns;
      for (std::size_t k = 0; k < columns; ++k) {
        adapted[k] += factor * from[k];
      }
    }
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
