// SPDX-License-Identifier: Apache-2.0
// The loops of row_loops.h for one instruction set.
#include "saker/base/portable_math.h"
#include "saker/base/row_loops.h"

namespace saker::SAKER_ISA {

namespace {

constexpr std::size_t kLanes = 16;

float max(const float* x, std::size_t count) {
  // Several vectors of lanes, since each comparison waits for the one before.
  constexpr std::size_t kWide = 4 * kLanes;
  float best[kWide];
  for (std::size_t lane = 0; lane < kWide; ++lane) {
    best[lane] = -__builtin_inff();
  }
  std::size_t i = 0;
  for (; i + kWide <= count; i += kWide) {
    for (std::size_t lane = 0; lane < kWide; ++lane) {
      best[lane] = x[i + lane] > best[lane] ? x[i + lane] : best[lane];
    }
  }
  for (std::size_t lane = 0; i < count; ++i, ++lane) {
    best[lane] = x[i] > best[lane] ? x[i] : best[lane];
  }
  for (std::size_t half = kWide / 2; half > 0; half /= 2) {
    for (std::size_t lane = 0; lane < half; ++lane) {
      best[lane] = best[lane + half] > best[lane] ? best[lane + half] : best[lane];
    }
  }
  return best[0];
}

double exp_sum(const float* x, std::size_t count, double max) {
  double sums[kLanes] = {};
  double block[4 * kLanes];
  std::size_t i = 0;
  // Exponentials and additions are separate loops, so that both vectorise.
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

extern const RowLoops row_loops_bodies;
const RowLoops row_loops_bodies = {.max = max, .exp_sum = exp_sum, .exponentials = exponentials};

}  // namespace saker::SAKER_ISA
