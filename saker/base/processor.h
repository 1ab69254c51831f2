// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which of the instruction sets that plain loops are compiled for this processor runs. The flags
// are those of cmake/isa.cmake.

namespace saker {

bool runs_avx2();
bool runs_avx512();
// The dot products of ARMv8.2 and the bf16 and int8 ones of ARMv8.6.
bool runs_neon_bf16();

}  // namespace saker
