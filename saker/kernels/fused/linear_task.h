// SPDX-License-Identifier: Apache-2.0
#pragma once

// A product of linear(), so that the operation on its result can run it as a part of its own: a
// step of decoding waits for each hand-over between operations.

#include "saker/kernels/cpu/multiply.h"
#include "saker/kernels/cpu_operation.h"
#include "saker/kernels/linear.h"
#include "saker/kernels/mx.h"
#include "saker/kernels/packed_weight.h"

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace saker::kernels {

// What is multiplied where: some rows by the one set of bodies, the others by the other.
struct LinearTask {
  std::shared_ptr<const PackedWeight::Storage> storage;
  const LinearBodies* bodies = nullptr;
  const LinearBodies* int8_bodies = nullptr;  // Null: `int8_rows` is empty.
  std::vector<RowRange> int8_rows;
  InputRows x;
  const RowProducer* make = nullptr;  // See RowProduct.
  const float* bias = nullptr;
  float* out = nullptr;

  // The same with rows [N, K], a bias [outputs] or null, and memory for the product.
  LinearTask of(const mx::array& rows, const mx::array* bias, float* result) const;
  // The same with rows that may be made, which must outlive it.
  LinearTask of(const PartRows& rows, const mx::array* bias, float* result) const;
  void operator()() const;

 private:
  RowProduct product(RowRange rows) const;
};

// An operation that gives a product's rows and that nobody else waits for.
struct FusablePrologue {
  std::shared_ptr<const mx::Primitive> operation;
  mx::Shape shape;

  // Its rows, from its inputs, once these hold their values. The memory lasts as long as a product
  // needs it: so all layers use the same.
  PartRows compute(const std::vector<mx::array>& inputs) const;
};

// The operation that linear() makes on CPU: inputs rows and, where there is one, a bias. With
// `before`, inputs the bias, then those of the operation that gives the rows.
struct LinearBody {
  LinearTask task;
  bool has_bias = false;
  std::optional<FusablePrologue> before;

  // The task that leaves the product in `result`.
  std::function<void()> start(std::span<const mx::array> inputs, float* result) const;

  std::function<void()> operator()(
      const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs
  ) const {
    return start(inputs, outputs[0].data<float>());
  }
};

// A product that nothing has begun to compute, with what gives its rows if that has kFusableIntoGemm,
// and their inputs: for the operation that reads its result, and takes both over.
struct DeferredGemm {
  LinearBody body;
  std::vector<mx::array> inputs;
};

// The product that gives y; none for all other arrays.
std::optional<DeferredGemm> deferred_gemm(const mx::array& y);

// Without memory, float32.
mx::array result_of(mx::Shape shape);
// The same with memory, not filled.
mx::array memory_for(mx::Shape shape);

}  // namespace saker::kernels
