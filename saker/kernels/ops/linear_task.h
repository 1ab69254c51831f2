// SPDX-License-Identifier: Apache-2.0
#pragma once

// A deferred GEMM of linear(). The operation on its result can run it inside its own task, which
// saves one hand-over between operations per decode step.

#include "saker/kernels/cpu/dispatch/multiply.h"
#include "saker/kernels/mx.h"
#include "saker/kernels/ops/cpu_operation.h"
#include "saker/kernels/ops/linear.h"
#include "saker/kernels/storage/packed_weight.h"

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace saker::kernels {

// One product: which rows run on which bodies. int8_rows run on int8_bodies, all others on bodies.
struct LinearTask {
  std::shared_ptr<const PackedWeight::Storage> storage;
  const LinearBodies* bodies = nullptr;
  const LinearBodies* int8_bodies = nullptr;  // Null: `int8_rows` is empty.
  std::vector<RowRange> int8_rows;
  InputRows x;
  const RowProducer* make = nullptr;  // See RowProduct.
  const float* bias = nullptr;
  float* out = nullptr;

  // This task with rows [N, K], a bias [outputs] or null, and memory for the product.
  LinearTask of(const mx::array& rows, const mx::array* bias, float* result) const;
  // This task with rows that may be computed by `rows.make`. `rows` must outlive it.
  LinearTask of(const PartRows& rows, const mx::array* bias, float* result) const;
  void operator()() const;

 private:
  RowProduct product(RowRange rows) const;
};

// The producer of a GEMM's input, which nobody else reads.
struct FusablePrologue {
  std::shared_ptr<const mx::Primitive> operation;
  mx::Shape shape;

  // Computes its rows, once `inputs` hold their values. The memory lives only until the product is
  // done, so all layers reuse it.
  PartRows compute(const std::vector<mx::array>& inputs) const;
};

// The operation that linear() builds on CPU. Its inputs are rows and, if present, a bias. With
// `before` they are the bias, if present, then the inputs of the producer of the rows.
struct LinearBody {
  LinearTask task;
  bool has_bias = false;
  std::optional<FusablePrologue> before;

  // Returns the task that leaves the product in `result`.
  std::function<void()> start(std::span<const mx::array> inputs, float* result) const;

  std::function<void()> operator()(
      const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs
  ) const {
    return start(inputs, outputs[0].data<float>());
  }
};

// A GEMM that has not begun, with its producer (if that has kFusableIntoGemm) and their inputs. The
// consumer of its result takes over both.
struct DeferredGemm {
  LinearBody body;
  std::vector<mx::array> inputs;
};

// The deferred GEMM whose result is y; nullopt for all other arrays.
std::optional<DeferredGemm> deferred_gemm(const mx::array& y);

// A float32 array without memory.
mx::array result_of(mx::Shape shape);
// A float32 array with memory, not filled.
mx::array memory_for(mx::Shape shape);

}  // namespace saker::kernels
