// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/ops/linear_task.h"

#include "saker/kernels/storage/packed_storage.h"

#include <cstddef>
#include <utility>

namespace saker::kernels {

LinearTask LinearTask::of(const mx::array& rows, const mx::array* rows_bias, float* result) const {
  LinearTask ready = *this;
  ready.x = {rows.data<float>(), rows.strides()[0], rows.strides()[1], rows.shape(0)};
  ready.bias = rows_bias != nullptr ? rows_bias->data<float>() : nullptr;
  ready.out = result;
  return ready;
}

LinearTask LinearTask::of(const PartRows& rows, const mx::array* rows_bias, float* result) const {
  if (!rows.make) {
    return of(rows.array, rows_bias, result);
  }
  LinearTask ready = *this;
  ready.x.count = rows.array.shape(0);
  ready.make = &rows.make;
  ready.bias = rows_bias != nullptr ? rows_bias->data<float>() : nullptr;
  ready.out = result;
  return ready;
}

RowProduct LinearTask::product(RowRange rows) const {
  InputRows part = x;
  part.data += rows.first * x.row_stride;
  part.count = rows.count;
  const PackedMatrix& matrix = storage->matrix;
  float* to = out + std::ptrdiff_t{rows.first} * matrix.rows;
  return {&matrix, part, bias, to, make, rows.first};
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

mx::array result_of(mx::Shape shape) {
  return mx::array(std::move(shape), mx::float32, nullptr, {});
}

mx::array memory_for(mx::Shape shape) {
  mx::array memory = result_of(std::move(shape));
  memory.set_data(mx::allocator::malloc(memory.nbytes()));
  return memory;
}

PartRows FusablePrologue::compute(const std::vector<mx::array>& inputs) const {
  PartRows rows{result_of(shape)};
  dynamic_cast<const CpuPart&>(*operation).start(inputs, rows)();
  return rows;
}

std::function<void()> LinearBody::start(std::span<const mx::array> inputs, float* result) const {
  if (!before) {
    return task.of(inputs[0], has_bias ? &inputs[1] : nullptr, result);
  }
  const auto first = inputs.begin() + (has_bias ? 1 : 0);
  return [task = task,
          before = *before,
          bias = std::vector<mx::array>(inputs.begin(), first),
          row_inputs = std::vector<mx::array>(first, inputs.end()),
          result] {
    const PartRows rows = before.compute(row_inputs);
    task.of(rows, bias.empty() ? nullptr : bias.data(), result)();
  };
}

namespace {

bool has_begun(const mx::array& x) {
  return !x.has_primitive() || x.status() != mx::array::Status::unscheduled;
}

// The producer of x, if a GEMM may run it.
std::optional<FusablePrologue> prologue(const mx::array& x) {
  if (has_begun(x)) {
    return std::nullopt;
  }
  const auto* part = dynamic_cast<const CpuPart*>(&x.primitive());
  if (part == nullptr || !part->feeds_product()) {
    return std::nullopt;
  }
  return FusablePrologue{x.primitive_ptr(), x.shape()};
}

}  // namespace

std::optional<DeferredGemm> deferred_gemm(const mx::array& y) {
  if (has_begun(y)) {
    return std::nullopt;
  }
  const auto* operation = dynamic_cast<const CpuOperation<LinearBody>*>(&y.primitive());
  if (operation == nullptr) {
    return std::nullopt;
  }
  DeferredGemm pending{operation->body(), y.inputs()};
  const mx::array rows = pending.inputs[0];
  pending.body.before = prologue(rows);
  if (pending.body.before) {
    pending.inputs.erase(pending.inputs.begin());
    pending.inputs.insert(pending.inputs.end(), rows.inputs().begin(), rows.inputs().end());
  }
  return pending;
}

}  // namespace saker::kernels
