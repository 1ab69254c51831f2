// SPDX-License-Identifier: Apache-2.0
// The loops of exp_rows.h for one instruction set.
#include "saker/base/exp_rows.h"
#include "saker/base/portable_math.h"

namespace saker::SAKER_ISA {

namespace {

constexpr std::size_t kLanes = 16;

double sum(const float* x, std::size_t count, double max) {
  double sums[kLanes] = {};
  double block[4 * kLanes];
  std::size_t i = 0;
  // Exponentials apart from additions: both loops vectorise then.
  for (; i + 4 * kLanes <= count; i += 4 * kLanes) {
    for (std::size_t j = 0; j < 4 * kLanes; ++j) {
      block[j] = portable_exp(static_cast<double>(x[i + j]) - max);
    }
    for (std::size_t j = 0; j < 4 * kLanes; j += kLanes) {
      for (std::size_t lane = 0; lane < kLanes; ++lane) {
        sums[lane] += block[j + lane];
      }
    }
  }
  for (; i < count; ++i) {
    sums[i % kLanes] += portable_exp(static_cast<double>(x[i]) - max);
  }
  double total = 0.0;
  for (const double part : sums) {
    total += part;
  }
  return total;
}

void exponentials(const float* x, std::size_t count, float* out) {
  for (std::size_t i = 0; i < count; ++i) {
    out[i] = static_cast<float>(portable_exp(static_cast<double>(x[i])));
  }
}

}  // namespace

extern const ExpRows exp_rows_bodies;
const ExpRows exp_rows_bodies = {.sum = sum, .exponentials = exponentials};

}  // namespace saker::SAKER_ISA
