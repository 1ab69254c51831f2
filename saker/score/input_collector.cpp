// SPDX-License-Identifier: Apache-2.0
#include "saker/score/input_collector.h"

#include "saker/base/error.h"
#include "saker/kernels/cpu/runtime/thread_pool.h"
#include "saker/kernels/mx.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <span>

namespace saker::score {
namespace {

// Columns that a thread adds at once: 4 KiB of sums stay in its first cache.
constexpr int kTileColumns = 512;

// Evaluated rows [N, K] with dense strides, and the expert of each; no experts: 0 for all.
struct EvaluatedRows {
  std::span<const float> values;
  std::span<const std::int32_t> experts;
  int count = 0;

  std::size_t expert(int row) const {
    return experts.empty() ? 0 : static_cast<std::size_t>(experts[static_cast<std::size_t>(row)]);
  }
};

// Each column is added by one thread, row by row.
void add_rows(const EvaluatedRows& rows, InputSquares& squares) {
  const int columns = squares.columns;
  const int tiles = (columns + kTileColumns - 1) / kTileColumns;
  kernels::thread_pool().run(tiles, [&](int tile) {
    const int first = tile * kTileColumns;
    const int width = std::min(kTileColumns, columns - first);
    for (int row = 0; row < rows.count; ++row) {
      const float* x = rows.values.data() + std::ptrdiff_t{row} * columns + first;
      double* sums =
          squares.sums.data() + rows.expert(row) * static_cast<std::size_t>(columns) + first;
      for (int i = 0; i < width; ++i) {
        sums[i] += static_cast<double>(x[i]) * x[i];
      }
    }
  });
  for (int row = 0; row < rows.count; ++row) {
    ++squares.counts[rows.expert(row)];
  }
}

}  // namespace

void InputCollector::observe(const nn::LinearInput& input) {
  const mx::array rows = mx::contiguous(mx::astype(input.rows, mx::float32));
  std::optional<mx::array> experts;
  if (input.experts != nullptr) {
    experts = mx::contiguous(*input.experts);
    mx::eval(rows, *experts);
  } else {
    mx::eval(rows);
  }
  InputSquares& squares = squares_of(input, rows.shape(1));
  EvaluatedRows evaluated{
      .values = {rows.data<float>(), rows.size()}, .experts = {}, .count = rows.shape(0)
  };
  if (experts) {
    evaluated.experts = {experts->data<std::int32_t>(), experts->size()};
    const bool known = std::ranges::all_of(evaluated.experts, [&](std::int32_t expert) {
      return expert >= 0 && expert < input.expert_count;
    });
    require(
        known,
        ErrorCode::kInternal,
        "[{}] a row of an expert that does not exist",
        input.modules.front()
    );
  }
  add_rows(evaluated, squares);
}

InputSquares& InputCollector::squares_of(const nn::LinearInput& input, int columns) {
  const auto found = modules_.find(input.modules.front());
  if (found == modules_.end()) {
    const auto experts = static_cast<std::size_t>(input.expert_count);
    const auto made = std::make_shared<InputSquares>();
    made->columns = columns;
    made->sums.resize(experts * static_cast<std::size_t>(columns));
    made->counts.resize(experts);
    for (const auto module : input.modules) {
      modules_.emplace(module, made);
    }
    return *made;
  }
  InputSquares& squares = *found->second;
  require(
      squares.columns == columns &&
          squares.counts.size() == static_cast<std::size_t>(input.expert_count),
      ErrorCode::kInternal,
      "[{}] got an input of {} columns and {} experts, expected {} and {}",
      input.modules.front(),
      columns,
      input.expert_count,
      squares.columns,
      squares.counts.size()
  );
  return squares;
}

InputSquaresByModule InputCollector::result() const {
  for (const auto& [module, squares] : modules_) {
    require(
        std::ranges::all_of(squares->sums, [](double sum) { return std::isfinite(sum); }),
        ErrorCode::kCorruptData,
        "[{}] the layer's inputs hold a number that is not finite",
        module
    );
  }
  return {modules_.begin(), modules_.end()};
}

}  // namespace saker::score
