// SPDX-License-Identifier: Apache-2.0
#pragma once

// The instruction sets that a test can run on this machine: those that the processor has, and
// AVX-512 and AMX by emulation.

#include "saker/kernels/weight_format.h"

#include <string>
#include <string_view>
#include <vector>

namespace saker::kernels {

// Names for select_kernel_table; the emulated ones are made selectable by the first call.
std::vector<std::string> instruction_sets();

// Whether this set takes operands of bf16 for weights of this format.
bool multiplies_bf16(std::string_view set, const WeightFormat& format);

}  // namespace saker::kernels
