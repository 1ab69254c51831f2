// SPDX-License-Identifier: Apache-2.0
#pragma once

// What this machine can do at most with the threads of the kernels' pool: the yardstick beside
// which rates are shown. Measured by loops that do nothing else: reading memory far larger than the
// caches, and multiply-adds on registers.

namespace saker::kernels {

// Billions a second; 0 where the machine has no such instructions. A multiply-add counts as two.
struct MachineLimits {
  double read_gbps = 0.0;  // Bytes.
  double f32_gflops = 0.0;
  double bf16_gflops = 0.0;
  double int8_gops = 0.0;
};

// Takes about half a second and 256 MiB.
MachineLimits measure_limits();

}  // namespace saker::kernels
