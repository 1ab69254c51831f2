// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/ops/linear_task.h"

#include "saker/kernels/cpu/dispatch/dispatch.h"
#include "saker/kernels/storage/packed_storage.h"

#include <cstddef>
#include <utility>

namespace saker::kernels {
namespace {

bool has_int8(const PackedMatrix& matrix) {
  return kernel_table().int8_linear != nullptr && matrix.kind != PackedKind::kFloat32 &&
         matrix.kind != PackedKind::kFloat16;
}

// All rows of a product, of which parts are cut.
struct WholeProduct {
  const PackedMatrix* matrix;
  InputRows x;
  const float* bias;
  float* out;
  const RowProducer* make;

  RowProduct part(RowRange rows) const {
    InputRows part = x;
    part.data += rows.first * x.row_stride;
    part.count = rows.count;
    float* to = out + std::ptrdiff_t{rows.first} * matrix->rows;
    return {matrix, part, bias, to, make, rows.first};
  }
};

void run(const LinearTask& task, const WholeProduct& whole) {
  std::vector<RowProduct> exact;
  std::vector<RowProduct> coarse;
  int next = 0;
  for (const RowRange& rows : task.int8_rows) {
    exact.push_back(whole.part({next, rows.first - next}));
    coarse.push_back(whole.part(rows));
    next = rows.first + rows.count;
  }
  exact.push_back(whole.part({next, whole.x.count - next}));
  multiply_rows(*task.bodies, exact);
  if (!coarse.empty()) {
    multiply_rows(*task.int8_bodies, coarse);
  }
}

}  // namespace

LinearTask::LinearTask(const PackedWeight& weight, std::span<const RowRange> rows_in_int8)
    : storage(weight.shared_storage()), bodies(kernel_table().linear) {
  check_order(*bodies, storage->matrix);
  if (has_int8(storage->matrix)) {
    int8_bodies = kernel_table().int8_linear;
    int8_rows.assign(rows_in_int8.begin(), rows_in_int8.end());
  }
}

void LinearTask::operator()(const InputRows& x, const float* bias, float* out) const {
  run(*this, {&storage->matrix, x, bias, out, nullptr});
}

void LinearTask::operator()(const TaskRows& x, const float* bias, float* out) const {
  if (!x.make) {
    (*this)(input_rows(x.array), bias, out);
    return;
  }
  InputRows rows;
  rows.count = x.array.shape(0);
  run(*this, {&storage->matrix, rows, bias, out, &x.make});
}

InputRows input_rows(const mx::array& x) {
  return {x.data<float>(), x.strides()[0], x.strides()[1], x.shape(0)};
}

bool is_packed_for_cpu(const PackedWeight& weight) {
  return !weight.storage().arrays.has_value();
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
