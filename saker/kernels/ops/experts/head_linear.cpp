// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/ops/experts/head_linear.h"

#include "saker/base/error.h"
#include "saker/kernels/cpu/dispatch/dispatch.h"
#include "saker/kernels/cpu/dispatch/multiply.h"
#include "saker/kernels/cpu/runtime/thread_pool.h"
#include "saker/kernels/gpu/backend.h"
#include "saker/kernels/ops/cpu_operation.h"
#include "saker/kernels/ops/linear_task.h"
#include "saker/kernels/ops/strided_rows.h"
#include "saker/kernels/storage/packed_storage.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace saker::kernels {
namespace {

void check_heads(
    const mx::array& x, const ExpertWeights& weights, const std::optional<mx::array>& tail
) {
  const bool fits = x.ndim() == 3 && x.shape(0) >= 1 && x.shape(1) == weights.experts() &&
                    x.shape(2) == weights.columns();
  const bool tail_fits = !tail || (tail->ndim() == 3 && tail->shape(0) == x.shape(0) &&
                                   tail->shape(1) == x.shape(1) && tail->shape(2) >= 1);
  require(
      fits && tail_fits,
      ErrorCode::kInternal,
      "[heads] got x [{}] and a tail of {} dimensions, expected [N, {}, {}] and [N, {}, T]",
      fmt::join(x.shape(), ", "),
      tail ? tail->ndim() : 0,
      weights.experts(),
      weights.columns(),
      weights.experts()
  );
}

// Products of all heads, [H, N, M].
void multiply_heads(
    const LinearBodies& bodies,
    const ExpertWeights& weights,
    const HeadRows& x,
    int count,
    float* out
) {
  std::vector<RowProduct> products;
  products.reserve(weights.packed()->size());
  for (int head = 0; head < weights.experts(); ++head) {
    RowProduct product;
    product.x = {x.data + head * x.head_stride, x.row_stride, 1, count};
    const auto& parts = (*weights.packed())[static_cast<std::size_t>(head)];
    product.weight = &parts.front().storage().matrix;
    product.out = out + std::ptrdiff_t{head} * count * weights.rows();
    products.push_back(product);
  }
  multiply_rows(bodies, products);
}

// Copies products [H, N, M] and tails to out [N, H, M + T].
void lay_by_row(
    const float* products, const HeadRows& tail, int tail_width, const mx::Shape& shape, float* out
) {
  const int rows = shape[0];
  const int heads = shape[1];
  const std::ptrdiff_t whole = shape[2];
  const std::ptrdiff_t width = whole - tail_width;
  const auto copy_row = [&](int row) {
    for (int head = 0; head < heads; ++head) {
      float* to = out + (std::ptrdiff_t{row} * heads + head) * whole;
      std::copy_n(products + (std::ptrdiff_t{head} * rows + row) * width, width, to);
      if (tail_width > 0) {
        std::copy_n(StridedRows::at(tail, row, head), tail_width, to + width);
      }
    }
  };
  const int workers = rows < kRowsPreparedAlone ? 1 : thread_pool().size();
  const auto copy_part = [&](int worker) {
    const int end = static_cast<int>(std::int64_t{rows} * (worker + 1) / workers);
    for (int row = static_cast<int>(std::int64_t{rows} * worker / workers); row < end; ++row) {
      copy_row(row);
    }
  };
  if (workers == 1) {
    copy_part(0);
  } else {
    thread_pool().run(workers, copy_part);
  }
}

mx::array cpu_head_linear(
    const mx::array& x, const ExpertWeights& weights, const std::optional<mx::array>& tail
) {
  const LinearBodies* bodies = kernel_table().linear;
  weights.check_orders(*bodies);
  const int tail_width = tail ? tail->shape(2) : 0;
  const mx::Shape shape = {x.shape(0), x.shape(1), weights.rows() + tail_width};
  std::vector<mx::array> inputs = {mx::astype(x, mx::float32)};
  if (tail) {
    inputs.push_back(mx::astype(*tail, mx::float32));
  }
  const auto body = [=](const std::vector<mx::array>& arrays, std::vector<mx::array>& outputs) {
    return [=,
            rows = StridedRows(arrays[0]),
            tails = StridedRows(arrays.back()),
            out = outputs[0].data<float>()]() mutable {
      // One row's products lie in order already.
      if (tail_width == 0 && shape[0] == 1) {
        multiply_heads(*bodies, weights, rows.resolve(), 1, out);
        return;
      }
      mx::array products = memory_for({shape[1], shape[0], weights.rows()});
      multiply_heads(*bodies, weights, rows.resolve(), shape[0], products.data<float>());
      lay_by_row(
          products.data<float>(),
          tail_width > 0 ? tails.resolve() : HeadRows{},
          tail_width,
          shape,
          out
      );
    };
  };
  return mx::astype(cpu_operation("HeadLinear", shape, std::move(inputs), body), x.dtype());
}

mx::array with_tail(mx::array y, const mx::array& x, const std::optional<mx::array>& tail) {
  y = mx::astype(mx::transpose(y, {1, 0, 2}), x.dtype());
  return tail ? mx::concatenate({y, mx::astype(*tail, x.dtype())}, 2) : y;
}

mx::array gpu_head_linear(
    const mx::array& x, const ExpertWeights& weights, const std::optional<mx::array>& tail
) {
  const PackedWeight& all = weights.packed()->front().front();
  const MlxWeight& arrays = *all.storage().arrays;
  const WeightFormat& format = all.format();
  const auto by_head = [&](const mx::array& array) {
    return mx::reshape(array, {weights.experts(), weights.rows(), array.shape(1)});
  };
  const auto rows = mx::transpose(mx::astype(x, operand_dtype(arrays)), {1, 0, 2});
  if (!arrays.scales) {
    const auto weight = mx::astype(by_head(arrays.weight), rows.dtype());
    return with_tail(mx::matmul(rows, mx::swapaxes(weight, 1, 2)), x, tail);
  }
  const auto product = mx::quantized_matmul(
      rows,
      by_head(arrays.weight),
      by_head(*arrays.scales),
      arrays.biases ? std::optional(by_head(*arrays.biases)) : std::nullopt,
      true,
      format.group_size,
      format.bits,
      mlx_mode(format.kind)
  );
  return with_tail(product, x, tail);
}

}  // namespace

mx::array head_linear(
    const mx::array& x, const ExpertWeights& weights, const std::optional<mx::array>& tail
) {
  check_heads(x, weights, tail);
  return on_cpu() ? cpu_head_linear(x, weights, tail) : gpu_head_linear(x, weights, tail);
}

mx::array head_linear_reference(
    const mx::array& x, const ExpertWeights& weights, const std::optional<mx::array>& tail
) {
  check_heads(x, weights, tail);
  const auto rows = mx::transpose(mx::astype(x, mx::float32), {1, 0, 2});
  return with_tail(mx::matmul(rows, mx::swapaxes(weights.dequantized(), 1, 2)), x, tail);
}

}  // namespace saker::kernels
