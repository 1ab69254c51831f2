// SPDX-License-Identifier: Apache-2.0
#pragma once

// The instruction sets that a test can run on this machine: those that the processor has, and
// AVX-512 and AMX by emulation.

#include <string>
#include <vector>

namespace saker::kernels {

// Names for select_kernel_table; the emulated ones are made selectable by the first call.
std::vector<std::string> instruction_sets();

}  // namespace saker::kernels
