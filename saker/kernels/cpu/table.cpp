// SPDX-License-Identifier: Apache-2.0
// The table of one instruction set.
#include "saker/kernels/cpu/dispatch.h"

namespace saker::kernels::SAKER_ISA {

extern const AttendBodies attend_bodies;
extern const DeltaBodies delta_bodies;
extern const LinearBodies linear_bodies;
extern const LinearBodies int8_linear_bodies;
extern const RowBodies row_bodies;

extern const KernelTable kernel_table;

const KernelTable kernel_table = {
    .attend = &attend_bodies,
    .delta = &delta_bodies,
    .linear = &linear_bodies,
#if defined(SAKER_EMULATE_BF16) || defined(__AVX512VNNI__)
    .int8_linear = &int8_linear_bodies,
#else
    .int8_linear = nullptr,
#endif
    .rows = &row_bodies,
};

}  // namespace saker::kernels::SAKER_ISA
