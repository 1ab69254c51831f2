// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/ops/linear.h"

#include "saker/base/error.h"
#include "saker/kernels/cpu/dispatch/dispatch.h"
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

// Inputs: rows and, if present, a bias.
struct LinearBody {
  LinearTask task;

  auto operator()(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) const {
    return [task = task,
            x = input_rows(inputs[0]),
            bias = inputs.size() > 1 ? inputs[1].data<float>() : nullptr,
            out = outputs[0].data<float>()] { task(x, bias, out); };
  }
};

mx::array cpu_linear(const mx::array& x, const Projection& projection) {
  std::vector<mx::array> inputs = {mx::astype(x, mx::float32)};
  add_bias(inputs, projection.bias);
  LinearBody body{LinearTask(projection)};
  const mx::Shape shape = {x.shape(0), projection.outputs()};
  const auto y = cpu_operation("Linear", shape, std::move(inputs), std::move(body));
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

// The row of an id; NaN for ids without a row.
void unpack_row_or_nan(const PackedMatrix& matrix, std::int32_t id, float* values) {
  if (id >= 0 && id < matrix.rows) {
    unpack_row(matrix, id, values);
  } else {
    std::fill_n(values, matrix.columns, std::numeric_limits<float>::quiet_NaN());
  }
}

}  // namespace

void check_linear_input(const mx::array& x, const Projection& projection) {
  for (const PackedWeight& weight : projection.weights) {
    require(
        x.ndim() == 2 && x.shape(1) == weight.columns(),
        ErrorCode::kInternal,
        "[linear] got x [{}], expected [M, {}]",
        fmt::join(x.shape(), ", "),
        weight.columns()
    );
  }
  const std::optional<mx::array>& bias = projection.bias;
  require(
      !bias || (bias->ndim() == 1 && bias->shape(0) == projection.outputs()),
      ErrorCode::kCorruptData,
      "[linear] got bias [{}], expected [{}]",
      fmt::join(bias ? bias->shape() : mx::Shape{}, ", "),
      projection.outputs()
  );
}

mx::array linear(
    const mx::array& x,
    const PackedWeight& weight,
    const std::optional<mx::array>& bias,
    std::span<const RowRange> int8_rows
) {
  return linear(x, Projection{{&weight, 1}, bias, int8_rows});
}

mx::array linear(const mx::array& x, const Projection& projection) {
  check_linear_input(x, projection);
  if (is_packed_for_cpu(projection)) {
    return cpu_linear(x, projection);
  }
  if (projection.weights.size() == 1) {
    return gpu_linear(x, projection.weights.front(), projection.bias);
  }
  std::vector<mx::array> results;
  int first = 0;
  for (const PackedWeight& weight : projection.weights) {
    const int end = first + weight.rows();
    const auto bias =
        projection.bias ? std::optional(mx::slice(*projection.bias, {first}, {end})) : std::nullopt;
    results.push_back(gpu_linear(x, weight, bias));
    first = end;
  }
  return mx::concatenate(results, 1);
}

bool multiplies_int8() {
  return on_cpu() && kernel_table().int8_linear != nullptr;
}

mx::array linear_reference(
    const mx::array& x, const PackedWeight& weight, const std::optional<mx::array>& bias
) {
  check_linear_input(x, Projection{{&weight, 1}, bias});
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
