// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/ops/linear.h"

#include "saker/base/error.h"
#include "saker/kernels/cpu/dispatch/dispatch.h"
#include "saker/kernels/cpu/dispatch/multiply.h"
#include "saker/kernels/cpu/runtime/thread_pool.h"
#include "saker/kernels/gpu/backend.h"
#include "saker/kernels/ops/cpu_operation.h"
#include "saker/kernels/ops/linear_task.h"
#include "saker/kernels/packing/pack.h"
#include "saker/kernels/storage/packed_storage.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

namespace saker::kernels {
namespace {

using SharedStorage = std::shared_ptr<const PackedWeight::Storage>;

bool has_int8(const PackedMatrix& matrix) {
  return kernel_table().int8_linear != nullptr && matrix.kind != PackedKind::kFloat32 &&
         matrix.kind != PackedKind::kFloat16;
}

mx::array cpu_linear(
    const mx::array& x,
    const PackedWeight& weight,
    const std::optional<mx::array>& bias,
    std::span<const RowRange> int8_rows
) {
  std::vector<mx::array> inputs = {mx::astype(x, mx::float32)};
  if (bias) {
    inputs.push_back(mx::contiguous(mx::astype(*bias, mx::float32)));
  }
  const LinearBodies* bodies = kernel_table().linear;
  check_order(*bodies, weight.storage().matrix);
  LinearBody body;
  body.has_bias = bias.has_value();
  body.task.storage = weight.shared_storage();
  body.task.bodies = bodies;
  if (has_int8(weight.storage().matrix)) {
    body.task.int8_bodies = kernel_table().int8_linear;
    body.task.int8_rows.assign(int8_rows.begin(), int8_rows.end());
  }
  const auto y =
      cpu_operation("Linear", {x.shape(0), weight.rows()}, std::move(inputs), std::move(body));
  return mx::astype(y, x.dtype());
}

mx::array gpu_linear(
    const mx::array& x, const PackedWeight& weight, const std::optional<mx::array>& bias
) {
  const MlxWeight& arrays = *weight.storage().arrays;
  const WeightFormat& format = weight.format();
  const auto rows = mx::astype(x, operand_dtype(arrays));
  const auto product =
      arrays.scales ? mx::quantized_matmul(
                          rows,
                          arrays.weight,
                          *arrays.scales,
                          arrays.biases,
                          true,
                          format.group_size,
                          format.bits,
                          mlx_mode(format.kind)
                      )
                    : mx::matmul(rows, mx::transpose(mx::astype(arrays.weight, rows.dtype())));
  return bias ? mx::add(product, mx::astype(*bias, product.dtype())) : product;
}

void check_input(
    const mx::array& x, const PackedWeight& weight, const std::optional<mx::array>& bias
) {
  require(
      x.ndim() == 2 && x.shape(1) == weight.columns(),
      ErrorCode::kInternal,
      "[linear] got x [{}], expected [M, {}]",
      fmt::join(x.shape(), ", "),
      weight.columns()
  );
  require(
      !bias || (bias->ndim() == 1 && bias->shape(0) == weight.rows()),
      ErrorCode::kCorruptData,
      "[linear] got bias [{}], expected [{}]",
      fmt::join(bias ? bias->shape() : mx::Shape{}, ", "),
      weight.rows()
  );
}

// The row of an id; NaN for ids without a row.
void unpack_row_or_nan(const PackedMatrix& matrix, std::int32_t id, float* values) {
  if (id >= 0 && id < matrix.rows) {
    unpack_row(matrix, id, values);
  } else {
    std::fill_n(values, matrix.columns, std::numeric_limits<float>::quiet_NaN());
  }
}

}  // namespace

mx::array linear(
    const mx::array& x,
    const PackedWeight& weight,
    const std::optional<mx::array>& bias,
    std::span<const RowRange> int8_rows
) {
  check_input(x, weight, bias);
  return weight.storage().arrays ? gpu_linear(x, weight, bias)
                                 : cpu_linear(x, weight, bias, int8_rows);
}

bool multiplies_int8() {
  return on_cpu() && kernel_table().int8_linear != nullptr;
}

mx::array linear_reference(
    const mx::array& x, const PackedWeight& weight, const std::optional<mx::array>& bias
) {
  check_input(x, weight, bias);
  auto y = mx::matmul(mx::astype(x, mx::float32), mx::transpose(weight.dequantized()));
  if (bias) {
    y = mx::add(y, mx::astype(*bias, mx::float32));
  }
  return mx::astype(y, x.dtype());
}

mx::array embed(const mx::array& ids, const PackedWeight& weight) {
  require(
      ids.ndim() == 1 && ids.dtype() == mx::int32,
      ErrorCode::kInternal,
      "[embed] got ids of {} dimensions, expected int32 [M]",
      ids.ndim()
  );
  if (weight.storage().arrays) {
    // Take rows of the packed arrays first, so that only those are dequantized.
    const MlxWeight& arrays = *weight.storage().arrays;
    const auto rows = [&](const std::optional<mx::array>& array) {
      return array ? std::optional(mx::take(*array, ids, 0)) : std::nullopt;
    };
    return dequantize_arrays(
        {*rows(arrays.weight), rows(arrays.scales), rows(arrays.biases)}, weight.format()
    );
  }
  SharedStorage storage = weight.shared_storage();
  const auto body = [storage = std::move(storage
                     )](const std::vector<mx::array>& arrays, std::vector<mx::array>& outputs) {
    const auto* id_data = arrays[0].data<std::int32_t>();
    const std::ptrdiff_t stride = arrays[0].strides()[0];
    const int count = arrays[0].shape(0);
    float* out = outputs[0].data<float>();
    return [storage, id_data, stride, count, out] {
      const PackedMatrix& matrix = storage->matrix;
      thread_pool().run(count, [&](int row) {
        float* values = out + static_cast<std::size_t>(row) * matrix.columns;
        unpack_row_or_nan(matrix, id_data[row * stride], values);
      });
    };
  };
  return cpu_operation("Embed", {ids.shape(0), weight.columns()}, {ids}, body);
}

}  // namespace saker::kernels
