// SPDX-License-Identifier: Apache-2.0
#include "tests/kernels/true_products.h"

#include <algorithm>
#include <cmath>

namespace saker::kernels {

namespace {

// Of one row of x and one of the weight.
struct Sizes {
  double products = 0;
  double inputs = 0;
  double weights = 0;
  double top_input = 0;
  double top_weight = 0;
};

double rounding_limit(Rounding rounding, const Sizes& sizes) {
  switch (rounding) {
    case Rounding::kBf16:
      return 0x1p-8 * (sizes.products + sizes.inputs * sizes.top_weight);
    case Rounding::kInt16:
      return 0x1p-15 * sizes.top_input * sizes.weights;
    default:
      return 0;
  }
}

}  // namespace

TrueProducts true_products(
    const std::vector<float>& rows,
    const std::vector<float>& weights,
    std::size_t columns,
    Rounding rounding
) {
  TrueProducts truth;
  for (std::size_t m = 0; m < rows.size() / columns; ++m) {
    for (std::size_t n = 0; n < weights.size() / columns; ++n) {
      double sum = 0;
      Sizes sizes;
      for (std::size_t k = 0; k < columns; ++k) {
        const double x = rows[m * columns + k];
        const double weight = weights[n * columns + k];
        sum += x * weight;
        sizes.products += std::abs(x * weight);
        sizes.inputs += std::abs(x);
        sizes.weights += std::abs(weight);
        sizes.top_input = std::max(sizes.top_input, std::abs(x));
        sizes.top_weight = std::max(sizes.top_weight, std::abs(weight));
      }
      truth.sums.push_back(sum);
      // Codes are multiplied before bias and scale apply, 256 of them at most of the largest
      // weight's size each.
      const double chain = sizes.products + 4 * sizes.inputs * sizes.top_weight;
      truth.limits.push_back(
          static_cast<double>(columns) * 0x1p-24 * chain + rounding_limit(rounding, sizes)
      );
    }
  }
  return truth;
}

}  // namespace saker::kernels
