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
#include <limits>
#include <span>
#include <vector>

namespace saker::kernels {
namespace {

struct ChooseBody {
  RouterOptions options;
  RouterTensors tensors;

  auto operator()(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) const {
    return [options = options,
            tensors = tensors,
            logits = StridedRows(inputs[0]),
            ids = outputs[0].data<int>(),
            weights = outputs[1].data<float>()]() mutable {
      const HeadRows from = logits.resolve();
      const auto width = static_cast<std::size_t>(logits.width());
      const auto chosen = static_cast<std::size_t>(options.chosen);
      const RowRouter router(options, tensors);
      // An exponential costs about as much as reading 16 floats.
      each_row(logits.rows(), 16L * logits.width(), [&](int row) {
        const auto at = static_cast<std::size_t>(row) * chosen;
        const std::span<const float> of_row(StridedRows::at(from, row, 0), width);
        choose_row(of_row, router, {ids + at, chosen}, weights + at);
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

// A router's scores, which become weights.
mx::array scores_of(const mx::array& logits, RouterScore score) {
  switch (score) {
    case RouterScore::kSoftmax:
      return mx::softmax(logits, 1, true);
    case RouterScore::kSoftmaxOfChosen:
      return logits;
    case RouterScore::kSigmoid:
      return mx::sigmoid(logits);
    case RouterScore::kSqrtSoftplus:
      return mx::sqrt(mx::logaddexp(logits, mx::array(0.0F)));
  }
  throw Error(ErrorCode::kInternal, "[experts] unknown score");
}

// Keys that the choice compares. Experts of groups that are not kept have -inf.
mx::array keys_of(
    const mx::array& logits,
    const mx::array& scores,
    const RouterOptions& options,
    const RouterTensors& tensors
) {
  auto keys = compares_logits(options, tensors) ? logits : scores;
  if (tensors.bias) {
    keys = keys + *tensors.bias;
  }
  if (options.groups == 1) {
    return keys;
  }
  const int rows = keys.shape(0);
  const int size = keys.shape(1) / options.groups;
  const auto grouped = mx::reshape(keys, {rows, options.groups, size});
  const int taken = options.group_score == GroupScore::kLargestTwo ? std::min(2, size) : 1;
  const auto largest =
      mx::slice(mx::sort(grouped, 2), {0, 0, size - taken}, {rows, options.groups, size});
  // The rank of each group.
  const auto ranks = mx::argsort(mx::argsort(mx::negative(mx::sum(largest, 2)), 1), 1);
  const auto kept = mx::less(ranks, mx::array(options.kept_groups, ranks.dtype()));
  const auto none = mx::array(-std::numeric_limits<float>::infinity());
  return mx::reshape(mx::where(mx::expand_dims(kept, 2), grouped, none), keys.shape());
}

void check_logits(
    const mx::array& logits, const RouterOptions& options, const RouterTensors& tensors
) {
  require(
      logits.ndim() == 2,
      ErrorCode::kInternal,
      "[experts] got logits of {} dimensions, expected [N, E]",
      logits.ndim()
  );
  check_router(options, tensors, logits.shape(1));
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

ExpertChoice choose_experts(
    const mx::array& logits, const RouterOptions& options, const RouterTensors& tensors
) {
  check_logits(logits, options, tensors);
  if (!on_cpu()) {
    return choose_experts_reference(logits, options, tensors);
  }
  const mx::Shape shape = {logits.shape(0), options.chosen};
  const auto chosen = cpu_operation(
      "ChooseExperts",
      {shape, shape},
      {mx::int32, mx::float32},
      {mx::astype(logits, mx::float32)},
      ChooseBody{options, tensors}
  );
  return {chosen[0], chosen[1]};
}

ExpertChoice choose_experts_reference(
    const mx::array& logits, const RouterOptions& options, const RouterTensors& tensors
) {
  check_logits(logits, options, tensors);
  mx::array capped = mx::astype(logits, mx::float32);
  if (options.softcap > 0.0F) {
    const mx::array cap(options.softcap);
    capped = cap * mx::tanh(capped / cap);
  }
  const mx::array scores = scores_of(capped, options.score);
  const auto order = mx::argsort(mx::negative(keys_of(capped, scores, options, tensors)), 1);
  const auto ids =
      mx::astype(mx::slice(order, {0, 0}, {logits.shape(0), options.chosen}), mx::int32);
  auto weights = mx::take_along_axis(scores, ids, 1);
  if (options.score == RouterScore::kSoftmaxOfChosen) {
    weights = mx::softmax(weights, 1, true);
  }
  if (options.normalized) {
    weights = weights / (mx::sum(weights, 1, true) + mx::array(options.epsilon));
  }
  if (options.scale != 1.0F) {
    weights = weights * mx::array(options.scale);
  }
  if (tensors.scales) {
    weights = weights * mx::take(*tensors.scales, ids);
  }
  return {ids, weights};
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
