// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/rope.h"

#include "saker/base/error.h"
#include "saker/kernels/backend.h"
#include "saker/kernels/cpu/dispatch.h"
#include "saker/kernels/cpu/row_bodies.h"
#include "saker/kernels/cpu_operation.h"
#include "saker/kernels/fused/one_kernel.h"
#include "saker/kernels/row_tiles.h"
#include "saker/kernels/strided_rows.h"

#include <cstddef>
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
  const RowBodies* bodies;

  auto operator()(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) const {
    return [bodies = bodies,
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
        bodies->rope(task, half, width);
      });
    };
  }
};

// Inputs x [N, H, R], cos, sin [N, R / 2]: each half of x times cos, and the other one times sin.
std::vector<mx::array> rotate(const std::vector<mx::array>& inputs) {
  const mx::array& x = inputs[0];
  const int half = inputs[1].shape(1);
  const mx::Shape halves = {x.shape(0), x.shape(1), 2, half};
  constexpr int kBeforeFirst = -3;  // Of two, counted from the end.
  const auto straight = mx::reshape(x, halves);
  const auto swapped =
      mx::slice(straight, {0, 0, 1, 0}, {halves[0], halves[1], kBeforeFirst, half}, {1, 1, -1, 1});
  const auto by_row = [&](const mx::array& table) { return mx::expand_dims(table, {1, 2}); };
  const auto sign = mx::array({-1.0F, 1.0F}, {2, 1});
  const auto wide = [](const mx::array& y) { return mx::astype(y, mx::float32); };
  const auto turned =
      wide(straight) * by_row(inputs[1]) + wide(swapped) * (sign * by_row(inputs[2]));
  return {mx::reshape(mx::astype(turned, x.dtype()), x.shape())};
}

// MLX's operations, few of them.
mx::array rope_plain(const mx::array& x, const mx::array& cos, const mx::array& sin) {
  const int rotated = 2 * cos.shape(1);
  const auto part = [&](int from, int to) {
    return mx::slice(x, {0, 0, from}, {x.shape(0), x.shape(1), to});
  };
  const bool whole = rotated == x.shape(2);
  const auto turned = one_kernel(rotate, {whole ? x : part(0, rotated), cos, sin}).front();
  return whole ? turned : mx::concatenate({turned, part(rotated, x.shape(2))}, 2);
}

}  // namespace

mx::array rope(const mx::array& x, const mx::array& cos, const mx::array& sin) {
  check(x, cos, sin);
  if (!on_cpu() || x.dtype() != mx::float32) {
    return rope_plain(x, cos, sin);
  }
  const std::vector<mx::array> inputs = {
      x, mx::astype(cos, mx::float32), mx::astype(sin, mx::float32)
  };
  return cpu_operation("SakerRope", x.shape(), inputs, RopeBody{kernel_table().rows});
}

mx::array rope_reference(const mx::array& x, const mx::array& cos, const mx::array& sin) {
  check(x, cos, sin);
  const int half = cos.shape(1);
  const auto wide = mx::astype(x, mx::float32);
  const auto part = [&](int from, int to) {
    return mx::slice(wide, {0, 0, from}, {x.shape(0), x.shape(1), to});
  };
  const auto a = part(0, half);
  const auto b = part(half, 2 * half);
  const auto cosines = mx::expand_dims(mx::astype(cos, mx::float32), 1);  // [N, 1, R / 2]
  const auto sines = mx::expand_dims(mx::astype(sin, mx::float32), 1);
  std::vector<mx::array> parts = {a * cosines - b * sines, b * cosines + a * sines};
  if (2 * half < x.shape(2)) {
    parts.push_back(part(2 * half, x.shape(2)));
  }
  return mx::astype(mx::concatenate(parts, 2), x.dtype());
}

}  // namespace saker::kernels
