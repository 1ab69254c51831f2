// SPDX-License-Identifier: Apache-2.0
#pragma once

// The bodies of the CPU kernels: one table per instruction set, chosen once at run time.
//
// Each operation declares a struct of function pointers (LinearBodies in linear_bodies.h). It
// defines `const LinearBodies linear_bodies` in namespace saker::kernels::<SAKER_ISA>, in a source
// that saker_isa_sources compiles for each set. The file table.cpp gathers them. An operation reads
// kernel_table() once, when it is built, so one pass never mixes sets.

#include <string_view>

namespace saker::kernels {

struct AttendBodies;  // cpu/dispatch/attend_bodies.h
struct DeltaBodies;   // cpu/dispatch/delta_bodies.h
struct LinearBodies;  // linear_bodies.h
struct RowBodies;     // row_bodies.h

struct KernelTable {
  const AttendBodies* attend;
  const DeltaBodies* delta;
  const LinearBodies* linear;
  const LinearBodies* int8_linear;  // int8 products, see cpu/int8/panels.h; null without them.
  const RowBodies* rows;
};

// The table in use: the best that the processor supports, or the one named by SAKER_CPU. Throws
// kUnsupported if that one cannot run.
const KernelTable& kernel_table();
std::string_view kernel_table_name();

// Switches to another table. Throws kUnsupported for unknown names and sets that this processor
// lacks.
void select_kernel_table(std::string_view name);

// For tests: makes another table selectable. `table` must outlive its use.
void add_kernel_table(std::string_view name, const KernelTable& table);

}  // namespace saker::kernels
