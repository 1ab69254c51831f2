// SPDX-License-Identifier: Apache-2.0
#pragma once

// A product of linear(), so that the operation on its result can run it as a part of its own: a
// step of decoding waits for each hand-over between operations.

#include "saker/kernels/cpu/multiply.h"
#include "saker/kernels/linear.h"
#include "saker/kernels/mx.h"
#include "saker/kernels/packed_weight.h"

#include <memory>
#include <vector>

namespace saker::kernels {

// What is multiplied where: some rows by the one set of bodies, the others by the other.
struct LinearTask {
  std::shared_ptr<const PackedWeight::Storage> storage;
  const LinearBodies* bodies = nullptr;
  const LinearBodies* int8_bodies = nullptr;  // Null: `int8_rows` is empty.
  std::vector<RowRange> int8_rows;
  InputRows x;
  const float* bias = nullptr;
  float* out = nullptr;

  // The same with the inputs of the operation: x [N, K] and, where there is one, a bias [outputs].
  LinearTask of(const mx::array* inputs, std::size_t count, float* result) const;
  void operator()() const;

 private:
  RowProduct product(RowRange rows) const;
};

// The operation that linear() makes on CPU.
struct LinearBody {
  LinearTask task;

  LinearTask operator()(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs)
      const;
};

// The product that gives y, where nothing has begun to compute it: whoever takes it over gives its
// own operation the inputs of y's. Null for all other arrays.
const LinearBody* pending_linear(const mx::array& y);

}  // namespace saker::kernels
