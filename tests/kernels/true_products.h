// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/kernels/instruction_sets.h"

#include <cstddef>
#include <vector>

namespace saker::kernels {

// Products in float64; `limits` bound the error that float32 sums and rounded inputs may have.
struct TrueProducts {
  std::vector<double> sums;
  std::vector<double> limits;
};

// Rows [M, columns] times the rows of weights [N, columns] -> [M, N].
TrueProducts true_products(
    const std::vector<float>& rows,
    const std::vector<float>& weights,
    std::size_t columns,
    Rounding rounding
);

}  // namespace saker::kernels
