// SPDX-License-Identifier: Apache-2.0
#include "tests/kernels/true_products.h"

#include <algorithm>
#include <cmath>

namespace saker::kernels {

TrueProducts true_products(
    const std::vector<float>& rows,
    const std::vector<float>& weights,
    std::size_t columns,
    bool bf16_inputs
) {
  TrueProducts truth;
  for (std::size_t m = 0; m < rows.size() / columns; ++m) {
    for (std::size_t n = 0; n < weights.size() / columns; ++n) {
      double sum = 0;
      double size = 0;
      double input_size = 0;
      double top = 0;
      for (std::size_t k = 0; k < columns; ++k) {
        const double product =
            static_cast<double>(rows[m * columns + k]) * weights[n * columns + k];
        sum += product;
        size += std::abs(product);
        input_size += std::abs(rows[m * columns + k]);
        top = std::max(top, static_cast<double>(std::abs(weights[n * columns + k])));
      }
      truth.sums.push_back(sum);
      // Codes are multiplied before bias and scale apply, 256 of them at most of the largest
      // weight's size each.
      const double chain = static_cast<double>(columns) * 0x1p-24 * (size + 4 * input_size * top);
      truth.limits.push_back(chain + (bf16_inputs ? 0x1p-8 * size + 0x1p-8 * input_size * top : 0));
    }
  }
  return truth;
}

}  // namespace saker::kernels
