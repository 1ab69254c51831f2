// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/fused/linear_task.h"

#include "saker/kernels/cpu_operation.h"
#include "saker/kernels/packed_storage.h"

#include <cstddef>

namespace saker::kernels {

LinearTask LinearTask::of(const mx::array* inputs, std::size_t count, float* result) const {
  LinearTask ready = *this;
  const mx::array& rows = inputs[0];
  ready.x = {rows.data<float>(), rows.strides()[0], rows.strides()[1], rows.shape(0)};
  ready.bias = count > 1 ? inputs[1].data<float>() : nullptr;
  ready.out = result;
  return ready;
}

RowProduct LinearTask::product(RowRange rows) const {
  InputRows part = x;
  part.data += rows.first * x.row_stride;
  part.count = rows.count;
  const PackedMatrix& matrix = storage->matrix;
  return {&matrix, part, bias, out + std::ptrdiff_t{rows.first} * matrix.rows};
}

void LinearTask::operator()() const {
  std::vector<RowProduct> exact;
  std::vector<RowProduct> coarse;
  int next = 0;
  for (const RowRange& rows : int8_rows) {
    exact.push_back(product({next, rows.first - next}));
    coarse.push_back(product(rows));
    next = rows.first + rows.count;
  }
  exact.push_back(product({next, x.count - next}));
  multiply_rows(*bodies, exact);
  if (!coarse.empty()) {
    multiply_rows(*int8_bodies, coarse);
  }
}

LinearTask LinearBody::operator()(
    const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs
) const {
  return task.of(inputs.data(), inputs.size(), outputs[0].data<float>());
}

const LinearBody* pending_linear(const mx::array& y) {
  if (!y.has_primitive() || y.status() != mx::array::Status::unscheduled) {
    return nullptr;
  }
  const auto* operation = dynamic_cast<const CpuOperation<LinearBody>*>(&y.primitive());
  return operation == nullptr ? nullptr : &operation->body();
}

}  // namespace saker::kernels
