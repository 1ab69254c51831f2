// SPDX-License-Identifier: Apache-2.0
#pragma once

// One GEMM inside an operation's task: linear() is such a task alone, a block (ops/blocks.h) has two.

#include "saker/kernels/cpu/dispatch/multiply.h"
#include "saker/kernels/mx.h"
#include "saker/kernels/ops/linear.h"
#include "saker/kernels/storage/packed_weight.h"

#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace saker::kernels {

// Rows [count, K] that a task computes for the GEMM after it.
struct TaskRows {
  mx::array array;  // Float32. Its memory lives until the GEMM is done.
  // If set, the array has no memory, and this computes its rows.
  RowProducer make = nullptr;
};

// The task of a projection's GEMMs: `int8_rows` run on `int8_bodies` where a weight has such
// products, all other rows on `bodies`.
struct LinearTask {
  struct Part {
    std::shared_ptr<const PackedWeight::Storage> storage;
    bool has_int8 = false;
  };

  std::vector<Part> parts;
  int outputs = 0;  // Columns of the result, of all parts.
  const LinearBodies* bodies = nullptr;
  const LinearBodies* int8_bodies = nullptr;
  std::vector<RowRange> int8_rows;

  // On the bodies in use. REQUIRES: the weights are packed for the CPU. Throws kInternal if one is
  // packed for another instruction set.
  explicit LinearTask(const Projection& projection);

  // x [N, K] times weights^T, plus `bias` [outputs] unless null -> out [N, outputs].
  void operator()(const InputRows& x, const float* bias, float* out) const;
  void operator()(const TaskRows& x, const float* bias, float* out) const;
};

// A float32 array [N, K] as a GEMM reads it. REQUIRES: it has memory.
InputRows input_rows(const mx::array& x);

// Throws kInternal unless x is [M, K], kCorruptData unless the bias is [outputs].
void check_linear_input(const mx::array& x, const Projection& projection);

// True if all weights are packed for our bodies, which run on CPU only.
bool is_packed_for_cpu(const Projection& projection);

// Appends a bias as a GEMM's task reads it: float32, with dense elements.
void add_bias(std::vector<mx::array>& inputs, const std::optional<mx::array>& bias);

// A float32 array without memory.
mx::array result_of(mx::Shape shape);
// A float32 array with memory, not filled.
mx::array memory_for(mx::Shape shape);

}  // namespace saker::kernels
