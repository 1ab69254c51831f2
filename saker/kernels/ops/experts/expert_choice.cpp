// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/ops/experts/expert_choice.h"

#include "saker/base/error.h"
#include "saker/kernels/gpu/backend.h"
#include "saker/kernels/layout/row_tiles.h"
#include "saker/kernels/ops/cpu_operation.h"
#include "saker/kernels/ops/experts/expert_rows.h"
#include "saker/kernels/ops/strided_rows.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace saker::kernels {
namespace {

struct ChooseBody {
  int count;
  SoftmaxOrder rule;

  auto operator()(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) const {
    return [count = count,
            rule = rule,
            scores = StridedRows(inputs[0]),
            ids = outputs[0].data<int>(),
            weights = outputs[1].data<float>()]() mutable {
      const HeadRows from = scores.resolve();
      const auto width = static_cast<std::size_t>(scores.width());
      const auto chosen = static_cast<std::size_t>(count);
      // An exponential costs about as much as reading 16 floats.
      each_row(scores.rows(), 16L * scores.width(), [&](int row) {
        const auto at = static_cast<std::size_t>(row) * chosen;
        choose_row({StridedRows::at(from, row, 0), width}, rule, {ids + at, chosen}, weights + at);
      });
    };
  }
};

// Inputs y [P, K], pairs [P], weights [N, R], dense; output [N, K].
auto combine_body(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) {
  const float* y = inputs[0].data<float>();
  const int* pairs = inputs[1].data<int>();
  const float* weights = inputs[2].data<float>();
  const std::size_t count = inputs[1].size();
  const int rows = inputs[2].shape(0);
  const int width = inputs[0].shape(1);
  float* out = outputs[0].data<float>();
  return [=] { combine_rows(y, places_of_pairs({pairs, count}), weights, rows, width, out); };
}

void check_combined(const mx::array& y, const ExpertPermutation& sorted, const mx::array& weights) {
  require(
      y.ndim() == 2 && weights.ndim() == 2 && y.shape(0) == static_cast<int>(weights.size()) &&
          sorted.pairs.shape() == mx::Shape{y.shape(0)},
      ErrorCode::kInternal,
      "[experts] got results [{}] and routing weights [{}], expected [N * R, K] and [N, R]",
      fmt::join(y.shape(), ", "),
      fmt::join(weights.shape(), ", ")
  );
}

void check_scores(const mx::array& scores, int count) {
  require(
      scores.ndim() == 2 && count > 0 && count <= scores.shape(1),
      ErrorCode::kInternal,
      "[experts] got scores [{}], expected [N, E] with E of at least {}",
      fmt::join(scores.shape(), ", "),
      count
  );
}

void check_ids(const mx::array& ids) {
  require(
      ids.ndim() == 2 && ids.dtype() == mx::int32,
      ErrorCode::kInternal,
      "[experts] got ids of {} dimensions, expected int32 [N, R]",
      ids.ndim()
  );
}

}  // namespace

ExpertChoice choose_experts(const mx::array& scores, int count, SoftmaxOrder rule) {
  check_scores(scores, count);
  if (!on_cpu()) {
    return choose_experts_reference(scores, count, rule);
  }
  const mx::Shape shape = {scores.shape(0), count};
  const auto chosen = cpu_operation(
      "ChooseExperts",
      {shape, shape},
      {mx::int32, mx::float32},
      {mx::astype(scores, mx::float32)},
      ChooseBody{count, rule}
  );
  return {chosen[0], chosen[1]};
}

ExpertChoice choose_experts_reference(const mx::array& scores, int count, SoftmaxOrder rule) {
  check_scores(scores, count);
  const auto all = mx::softmax(mx::astype(scores, mx::float32), 1, true);
  const auto order = mx::argsort(mx::negative(mx::astype(scores, mx::float32)), 1);
  const auto ids = mx::astype(mx::slice(order, {0, 0}, {scores.shape(0), count}), mx::int32);
  const auto weights = mx::take_along_axis(all, ids, 1);
  return {ids, rule == SoftmaxOrder::kBeforeTopK ? weights : weights / mx::sum(weights, 1, true)};
}

ExpertPermutation sort_by_expert(const mx::array& ids, int experts) {
  check_ids(ids);
  if (!on_cpu()) {
    return sort_by_expert_reference(ids);
  }
  const auto body =
      [experts](const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) {
        const std::span<const int> from(inputs[0].data<int>(), inputs[0].size());
        int* pairs = outputs[0].data<int>();
        int* sorted = outputs[1].data<int>();
        return [=] { sort_pairs(from, experts, pairs, sorted); };
      };
  const mx::Shape shape = {static_cast<int>(ids.size())};
  const auto sorted = cpu_operation(
      "SortByExpert", {shape, shape}, {mx::int32, mx::int32}, {mx::contiguous(ids)}, body
  );
  return {sorted[0], sorted[1]};
}

ExpertPermutation sort_by_expert_reference(const mx::array& ids) {
  check_ids(ids);
  const auto flat = mx::flatten(ids);
  const auto pairs = mx::argsort(flat);
  return {mx::astype(pairs, mx::int32), mx::take(flat, pairs)};
}

mx::array gather_rows(const mx::array& x, const ExpertPermutation& sorted) {
  const int ranks = sorted.pairs.shape(0) / std::max(1, x.shape(0));
  return mx::take(x, mx::floor_divide(sorted.pairs, mx::array(std::max(1, ranks))), 0);
}

mx::array combine_experts(
    const mx::array& y, const ExpertPermutation& sorted, const mx::array& weights
) {
  check_combined(y, sorted, weights);
  if (!on_cpu()) {
    return combine_experts_reference(y, sorted, weights);
  }
  const auto sum = cpu_operation(
      "CombineExperts",
      {weights.shape(0), y.shape(1)},
      {mx::contiguous(mx::astype(y, mx::float32)),
       mx::contiguous(sorted.pairs),
       mx::contiguous(mx::astype(weights, mx::float32))},
      [](const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) {
        return combine_body(inputs, outputs);
      }
  );
  return mx::astype(sum, y.dtype());
}

mx::array combine_experts_reference(
    const mx::array& y, const ExpertPermutation& sorted, const mx::array& weights
) {
  check_combined(y, sorted, weights);
  const int rows = weights.shape(0);
  const int ranks = weights.shape(1);
  const auto by_pair = mx::take(mx::astype(y, mx::float32), mx::argsort(sorted.pairs), 0);
  const auto weighted =
      mx::reshape(by_pair, {rows, ranks, y.shape(1)}) * mx::expand_dims(weights, 2);
  return mx::astype(mx::sum(weighted, 1), y.dtype());
}

}  // namespace saker::kernels
