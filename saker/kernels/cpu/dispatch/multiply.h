// SPDX-License-Identifier: Apache-2.0
#pragma once

// Matrix products on all threads: prepares the rows of x and cuts the results into tiles.

#include "saker/kernels/cpu/dispatch/linear_bodies.h"

#include <functional>
#include <span>

namespace saker::kernels {

// Up to this many rows are prepared on one thread: waking others would take longer.
inline constexpr int kRowsPreparedAlone = 8;

// Writes rows [first, first + count) of x to `to`, densely. Called from several threads.
using RowProducer = std::function<void(int first, int count, float* to)>;

// out [x.count, weight->rows] = x times weight^T, plus `bias` [weight->rows] unless null.
struct RowProduct {
  const PackedMatrix* weight = nullptr;
  InputRows x;  // With `make`, only its count is used.
  const float* bias = nullptr;
  float* out = nullptr;
  // If not null, computes x while it is prepared: the producer's rows from first_made on.
  const RowProducer* make = nullptr;
  int first_made = 0;
};

// Throws kInternal unless `bodies` multiply weights in this order. Weights are packed for the
// instruction set in use at that time.
void check_order(const LinearBodies& bodies, const PackedMatrix& weight);

// Products share the threads as if they were one, and share prepared rows if they have the same x.
// Keeps working memory for its threads' next products. Throws kCapacity when out of memory.
void multiply_rows(const LinearBodies& bodies, std::span<const RowProduct> products);

}  // namespace saker::kernels
