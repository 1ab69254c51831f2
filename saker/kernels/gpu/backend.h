// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which device runs the operations: CPU with our own bodies, or a GPU with MLX's. Chosen once at
// start, before the first array.

#include "saker/kernels/mx.h"

#include <string_view>

namespace saker::kernels {

// True when MLX's default device is the CPU: operations then run our bodies.
bool on_cpu();
// For tests: after pretend_gpu(true), `on_cpu` returns false and operations are MLX's own, as on a
// GPU. Models and caches are valid only between the two calls that they were made between.
void pretend_gpu(bool pretend);

// Selects "cpu" or "gpu"; throws kUnsupported when this MLX has no GPU.
void select_device(std::string_view name);

// Worker threads of the CPU kernels. 0, the default: one per processor that this process may use.
// Results do not depend on it.
void set_threads(int count);
int threads();

// The instruction set of the CPU bodies: "amx", "avx512_bf16_zen4", "avx512_bf16", "avx512_vnni",
// "avx512" or "avx2"; "neon_bf16" or "neon"; or "portable". The environment variable SAKER_CPU
// selects one. If the machine lacks it, the first use throws kUnsupported.
std::string_view instruction_set();
// For tests: switches the instruction set between passes. Weights must be packed again.
void select_instruction_set(std::string_view name);

}  // namespace saker::kernels
