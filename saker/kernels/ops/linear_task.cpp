// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/ops/linear_task.h"

#include "saker/kernels/cpu/dispatch/dispatch.h"
#include "saker/kernels/layout/row_tiles.h"
#include "saker/kernels/storage/packed_storage.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <numeric>
#include <utility>

namespace saker::kernels {
namespace {

bool has_int8(const PackedMatrix& matrix) {
  return kernel_table().int8_linear != nullptr && matrix.kind != PackedKind::kFloat32 &&
         matrix.kind != PackedKind::kFloat16;
}

// All rows of a product, of which ranges are cut.
struct WholeProduct {
  const PackedMatrix* matrix;
  InputRows x;
  const float* bias;
  float* out;  // [x.count, matrix->rows]
  const RowProducer* make;

  RowProduct range(RowRange rows) const {
    InputRows range = x;
    range.data += rows.first * x.row_stride;
    range.count = rows.count;
    float* to = out + std::ptrdiff_t{rows.first} * matrix->rows;
    return {matrix, range, bias, to, make, rows.first};
  }
};

// What is multiplied at once.
struct Products {
  std::vector<RowProduct> exact;
  std::vector<RowProduct> coarse;

  void add(const WholeProduct& whole, std::span<const RowRange> int8_rows) {
    int next = 0;
    for (const RowRange& rows : int8_rows) {
      exact.push_back(whole.range({next, rows.first - next}));
      coarse.push_back(whole.range(rows));
      next = rows.first + rows.count;
    }
    exact.push_back(whole.range({next, whole.x.count - next}));
  }
};

// Copies the results of all parts, one after the other, to where they are side by side.
void lay_side_by_side(const LinearTask& task, const float* results, int rows, float* out) {
  std::vector<const float*> from;
  for (const auto& part : task.parts) {
    from.push_back(results);
    results += std::ptrdiff_t{rows} * part.storage->matrix.rows;
  }
  each_row(rows, task.outputs, [&](int row) {
    float* to = out + std::ptrdiff_t{row} * task.outputs;
    for (std::size_t i = 0; i < from.size(); ++i) {
      const int width = task.parts[i].storage->matrix.rows;
      to = std::copy_n(from[i] + std::ptrdiff_t{row} * width, width, to);
    }
  });
}

void run(
    const LinearTask& task,
    const InputRows& x,
    const float* bias,
    float* out,
    const RowProducer* make
) {
  // Bodies write dense results. Those of one row are side by side as they are.
  const bool is_apart = task.parts.size() > 1 && x.count > 1;
  std::optional<mx::array> apart;
  if (is_apart) {
    apart = memory_for({x.count, task.outputs});
  }
  float* to = is_apart ? apart->data<float>() : out;
  Products products;
  for (const auto& part : task.parts) {
    const PackedMatrix& matrix = part.storage->matrix;
    const WholeProduct whole{&matrix, x, bias, to, make};
    products.add(whole, part.has_int8 ? task.int8_rows : std::span<const RowRange>());
    to += std::ptrdiff_t{x.count} * matrix.rows;
    bias = bias == nullptr ? nullptr : bias + matrix.rows;
  }
  multiply_rows(*task.bodies, products.exact);
  if (!products.coarse.empty()) {
    multiply_rows(*task.int8_bodies, products.coarse);
  }
  if (is_apart) {
    lay_side_by_side(task, apart->data<float>(), x.count, out);
  }
}

}  // namespace

int Projection::outputs() const {
  return std::transform_reduce(weights.begin(), weights.end(), 0, std::plus{}, [](const auto& w) {
    return w.rows();
  });
}

LinearTask::LinearTask(const Projection& projection)
    : outputs(projection.outputs()),
      bodies(kernel_table().linear),
      int8_bodies(kernel_table().int8_linear),
      int8_rows(projection.int8_rows.begin(), projection.int8_rows.end()) {
  for (const PackedWeight& weight : projection.weights) {
    auto storage = weight.shared_storage();
    check_order(*bodies, storage->matrix);
    const bool coarse = has_int8(storage->matrix);
    parts.push_back({std::move(storage), coarse});
  }
}

void LinearTask::operator()(const InputRows& x, const float* bias, float* out) const {
  run(*this, x, bias, out, nullptr);
}

void LinearTask::operator()(const TaskRows& x, const float* bias, float* out) const {
  if (!x.make) {
    (*this)(input_rows(x.array), bias, out);
    return;
  }
  InputRows rows;
  rows.count = x.array.shape(0);
  run(*this, rows, bias, out, &x.make);
}

InputRows input_rows(const mx::array& x) {
  return {x.data<float>(), x.strides()[0], x.strides()[1], x.shape(0)};
}

bool is_packed_for_cpu(const Projection& projection) {
  return std::ranges::none_of(projection.weights, [](const PackedWeight& weight) {
    return weight.storage().arrays.has_value();
  });
}

void add_bias(std::vector<mx::array>& inputs, const std::optional<mx::array>& bias) {
  if (bias) {
    inputs.push_back(mx::contiguous(mx::astype(*bias, mx::float32)));
  }
}

mx::array result_of(mx::Shape shape) {
  return mx::array(std::move(shape), mx::float32, nullptr, {});
}

mx::array memory_for(mx::Shape shape) {
  mx::array memory = result_of(std::move(shape));
  memory.set_data(mx::allocator::malloc(memory.nbytes()));
  return memory;
}

}  // namespace saker::kernels
