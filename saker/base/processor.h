// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which of the instruction sets that plain loops are compiled for runs on this processor. The
// compiler flags are in cmake/isa.cmake.

namespace saker {

bool runs_avx2();
bool runs_avx512();
// True for the dot products of ARMv8.2 together with the bf16 and int8 ones of ARMv8.6.
bool runs_neon_bf16();

}  // namespace saker
