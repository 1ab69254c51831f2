// SPDX-License-Identifier: Apache-2.0
#pragma once

// Upper limits of this machine with the threads of the kernels' pool, to compare reported rates
// with. Measured by loops that do nothing else: reads of memory far larger than the caches, and
// multiply-adds on registers.

namespace saker::kernels {

// Billions per second; 0 where the machine lacks the instructions. A multiply-add counts as two.
struct MachineLimits {
  double read_gbps = 0.0;  // Bytes.
  double f32_gflops = 0.0;
  double bf16_gflops = 0.0;
  double int8_gops = 0.0;
};

// Takes about half a second and 256 MiB.
MachineLimits measure_limits();

}  // namespace saker::kernels
