// SPDX-License-Identifier: Apache-2.0
// The table of one instruction set.
#include "saker/kernels/cpu/dispatch.h"

namespace saker::kernels::SAKER_ISA {

extern const KernelTable kernel_table;

const KernelTable kernel_table = {};

}  // namespace saker::kernels::SAKER_ISA
