// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/ops/rope.h"

#include "saker/base/error.h"
#include "saker/kernels/cpu/dispatch/dispatch.h"
#include "saker/kernels/cpu/dispatch/row_bodies.h"
#include "saker/kernels/gpu/backend.h"
#include "saker/kernels/gpu/compile_on_gpu.h"
#include "saker/kernels/layout/row_tiles.h"
#include "saker/kernels/ops/cpu_operation.h"
#include "saker/kernels/ops/strided_rows.h"

#include <cstddef>
#include <optional>
#include <vector>

namespace saker::kernels {
namespace {

void check(const mx::array& x, const mx::array& cos, const mx::array& sin) {
  require(
      x.ndim() == 3 && x.size() > 0 && cos.ndim() == 2 && cos.shape() == sin.shape() &&
          cos.shape(0) == x.shape(0) && cos.shape(1) >= 1 && 2 * cos.shape(1) <= x.shape(2),
      ErrorCode::kInvalidArgument,
      "rope: tables of {} and {} elements do not fit {} rows of {}",
      cos.size(),
      sin.size(),
      x.ndim() == 3 ? x.shape(0) : 0,
      x.ndim() == 3 ? x.shape(2) : 0
  );
}

// Inputs x, cos, sin; output like x.
struct RopeBody {
  void (*body)(const RopeRow& row, int half, int width);

  auto operator()(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) const {
    return [body = body,
            x = StridedRows(inputs[0]),
            cos = StridedRows(inputs[1]),
            sin = StridedRows(inputs[2]),
            out = outputs[0].data<float>()]() mutable {
      const HeadRows from = x.resolve();
      const HeadRows cosines = cos.resolve();
      const HeadRows sines = sin.resolve();
      const int heads = x.heads();
      const int width = x.width();
      const int half = cos.width();
      each_row(x.rows() * heads, 3L * width, [&](int row) {
        const int position = row / heads;
        const RopeRow task{
            StridedRows::at(from, position, row % heads),
            StridedRows::at(cosines, position, 0),
            StridedRows::at(sines, position, 0),
            out + static_cast<std::ptrdiff_t>(row) * width,
        };
        body(task, half, width);
      });
    };
  }
};

constexpr int kBeforeFirst = -3;  // For an axis of two, counted from the end.

// Swaps the halves of [..., 2, R / 2].
mx::array swap_halves(const mx::array& x) {
  mx::Shape begin(x.ndim(), 0);
  mx::Shape end = x.shape();
  mx::Shape steps(x.ndim(), 1);
  const auto halves = x.ndim() - 2;
  begin[halves] = 1;
  end[halves] = kBeforeFirst;
  steps[halves] = -1;
  return mx::slice(x, begin, end, steps);
}

// Inputs: x [N, H, R] or with axes of 1 beside N; cos and sin [N, R / 2]; optionally both parts of
// HeadWeights. Output: each half of x times cos, plus the other half times -sin (for the first) or
// sin (for the second).
std::vector<mx::array> rotate(const std::vector<mx::array>& inputs) {
  const mx::array& x = inputs[0];
  const mx::Shape& table_shape = inputs[1].shape();
  const auto straight = mx::reshape(x, {table_shape[0], x.shape(-2), 2, table_shape[1]});
  const auto weighted = [&](const mx::array& y, std::size_t weight) {
    const auto wide = mx::astype(y, mx::float32);
    return weight < inputs.size() ? wide * inputs[weight] : wide;
  };
  const auto by_row = [](const mx::array& table) {
    return table.shape(0) == 1 ? table : mx::expand_dims(table, {1, 2});
  };
  const auto sign = mx::array({-1.0F, 1.0F}, {2, 1});
  const auto turned = weighted(straight, 3) * by_row(inputs[1]) +
                      weighted(swap_halves(straight), 4) * (sign * by_row(inputs[2]));
  return {mx::reshape(mx::astype(turned, x.dtype()), x.shape())};
}

// As `rotate`, for pairs of neighbours and without weights.
std::vector<mx::array> rotate_neighbours(const std::vector<mx::array>& inputs) {
  const mx::array& x = inputs[0];
  const mx::Shape& table_shape = inputs[1].shape();
  const auto pairs =
      mx::reshape(mx::astype(x, mx::float32), {table_shape[0], x.shape(-2), table_shape[1], 2});
  const auto element = [&](int i) {
    mx::Shape end = pairs.shape();
    end.back() = i + 1;
    return mx::squeeze(mx::slice(pairs, {0, 0, 0, i}, end), -1);
  };
  const auto a = element(0);
  const auto b = element(1);
  const auto cos = mx::expand_dims(inputs[1], 1);
  const auto sin = mx::expand_dims(inputs[2], 1);
  const auto turned = mx::stack({a * cos - b * sin, b * cos + a * sin}, -1);
  return {mx::reshape(mx::astype(turned, x.dtype()), x.shape())};
}

}  // namespace

mx::array rope(const mx::array& x, const mx::array& cos, const mx::array& sin, RopePairs pairs) {
  check(x, cos, sin);
  if (!on_cpu() || x.dtype() != mx::float32) {
    return rope_plain(x, std::nullopt, cos, sin, pairs);
  }
  const RowBodies& bodies = *kernel_table().rows;
  const std::vector<mx::array> inputs = {
      x, mx::astype(cos, mx::float32), mx::astype(sin, mx::float32)
  };
  return cpu_operation(
      "SakerRope",
      x.shape(),
      inputs,
      RopeBody{pairs == RopePairs::kHalves ? bodies.rope : bodies.rope_neighbours}
  );
}

HeadWeights weights_of_heads(
    const mx::array& q_weight, int query_heads, const mx::array& k_weight, int kv_heads
) {
  const int half = q_weight.shape(0) / 2;
  const auto repeated = [half](const mx::array& weight, int count) {
    return mx::broadcast_to(mx::reshape(weight, {1, 2, half}), {count, 2, half});
  };
  const auto straight =
      mx::concatenate({repeated(q_weight, query_heads), repeated(k_weight, kv_heads)}, 0);
  HeadWeights both{straight, mx::contiguous(swap_halves(straight))};
  mx::eval(both.straight, both.swapped);
  return both;
}

mx::array rope_plain(
    const mx::array& x,
    const std::optional<HeadWeights>& weights,
    const mx::array& cos,
    const mx::array& sin,
    RopePairs pairs
) {
  const int width = x.shape(-1);
  const int rotated = 2 * cos.shape(1);
  if (rotated == width && pairs == RopePairs::kHalves) {
    std::vector<mx::array> inputs = {x, cos, sin};
    if (weights) {
      inputs.insert(inputs.end(), {weights->straight, weights->swapped});
    }
    return compile_on_gpu(rotate, inputs).front();
  }
  const auto heads = weights ? mx::astype(x * mx::flatten(weights->straight, 1, 2), x.dtype()) : x;
  const auto part = [&](int from, int to) {
    mx::Shape begin(x.ndim(), 0);
    mx::Shape end = x.shape();
    begin.back() = from;
    end.back() = to;
    return mx::slice(heads, begin, end);
  };
  const auto turn = pairs == RopePairs::kHalves ? rotate : rotate_neighbours;
  const auto turned = compile_on_gpu(turn, {part(0, rotated), cos, sin}).front();
  return rotated == width ? turned : mx::concatenate({turned, part(rotated, width)}, -1);
}

mx::array rope_reference(
    const mx::array& x, const mx::array& cos, const mx::array& sin, RopePairs pairs
) {
  check(x, cos, sin);
  const int half = cos.shape(1);
  const bool halves = pairs == RopePairs::kHalves;
  const auto wide = mx::astype(x, mx::float32);
  const auto part = [&](int from, int to, int step) {
    return mx::slice(wide, {0, 0, from}, {x.shape(0), x.shape(1), to}, {1, 1, step});
  };
  const auto a = halves ? part(0, half, 1) : part(0, 2 * half, 2);
  const auto b = halves ? part(half, 2 * half, 1) : part(1, 2 * half, 2);
  const auto cosines = mx::expand_dims(mx::astype(cos, mx::float32), 1);  // [N, 1, R / 2]
  const auto sines = mx::expand_dims(mx::astype(sin, mx::float32), 1);
  const std::vector<mx::array> turned = {a * cosines - b * sines, b * cosines + a * sines};
  std::vector<mx::array> parts = {
      halves ? mx::concatenate(turned, 2)
             : mx::reshape(mx::stack(turned, 3), {x.shape(0), x.shape(1), 2 * half})
  };
  if (2 * half < x.shape(2)) {
    parts.push_back(part(2 * half, x.shape(2), 1));
  }
  return mx::astype(mx::concatenate(parts, 2), x.dtype());
}

}  // namespace saker::kernels
