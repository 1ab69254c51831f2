// SPDX-License-Identifier: Apache-2.0
// The table of one instruction set.
#include "saker/kernels/cpu/dispatch/dispatch.h"

// Sets with two tables, both with int8 bodies; the second one has Winograd's products
// (docs/adr/0030). AMX has no int8 bodies: bf16 on tiles is as fast as the rest of a pass
// (docs/adr/0015).
#if (defined(__AVX512BF16__) && !defined(__AMX_TILE__)) || \
    (defined(SAKER_EMULATE_BF16) && !defined(SAKER_EMULATE_AMX))
#define SAKER_TWO_TABLES
#endif

namespace saker::kernels::SAKER_ISA {

extern const AttendBodies attend_bodies;
extern const DeltaBodies delta_bodies;
extern const LinearBodies linear_bodies;
extern const LinearBodies winograd_linear_bodies;
extern const LinearBodies int8_linear_bodies;
extern const RowBodies row_bodies;

extern const KernelTable kernel_table;
extern const KernelTable winograd_kernel_table;

const KernelTable kernel_table = {
    .attend = &attend_bodies,
    .delta = &delta_bodies,
    .linear = &linear_bodies,
#if defined(SAKER_TWO_TABLES)
    .int8_linear = &int8_linear_bodies,
#else
    .int8_linear = nullptr,
#endif
    .rows = &row_bodies,
};

#if defined(SAKER_TWO_TABLES)
const KernelTable winograd_kernel_table = {
    .attend = &attend_bodies,
    .delta = &delta_bodies,
    .linear = &winograd_linear_bodies,
    .int8_linear = &int8_linear_bodies,
    .rows = &row_bodies,
};
#endif

}  // namespace saker::kernels::SAKER_ISA
