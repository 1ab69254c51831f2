// SPDX-License-Identifier: Apache-2.0
#pragma once

// Matrix products on all threads: prepares the rows of x and cuts the results into tiles.

#include "saker/kernels/cpu/linear_bodies.h"

#include <functional>
#include <span>

namespace saker::kernels {

// So many rows one thread prepares before others would have taken over; more take all threads.
inline constexpr int kRowsPreparedAlone = 8;

// Writes rows [first, first + count) of x to `to`, side by side. Several threads call it.
using RowProducer = std::function<void(int first, int count, float* to)>;

// out [x.count, weight->rows] = x times weight^T, plus `bias` [weight->rows] unless null.
struct RowProduct {
  const PackedMatrix* weight = nullptr;
  InputRows x;  // Its count only where the rows are made.
  const float* bias = nullptr;
  float* out = nullptr;
  // Not null: makes the rows as they are prepared, from its row first_made on.
  const RowProducer* make = nullptr;
  int first_made = 0;
};

// Throws kInternal unless `bodies` multiply weights in this order: weights are packed for the set
// that is in use then.
void check_order(const LinearBodies& bodies, const PackedMatrix& weight);

// All products share the threads as if they were one, and those of the same rows of x what is
// prepared of them. Keeps working memory for its threads' next products. Throws kCapacity without
// memory.
void multiply_rows(const LinearBodies& bodies, std::span<const RowProduct> products);

}  // namespace saker::kernels
