// SPDX-License-Identifier: Apache-2.0
#pragma once

// Gated activations of rows inside an operation's task.

#include "saker/kernels/cpu/dispatch/head_rows.h"
#include "saker/kernels/cpu/dispatch/row_bodies.h"
#include "saker/kernels/ops/activation.h"

namespace saker::kernels {

using GatedFunction = void (*)(const GatedRow& row, int width);

// The body in use. An operation keeps it from when it is built.
GatedFunction gated_function(Activation activation);

// Rows [rows, 2 * width], gates beside ups -> out [rows, width], on all threads.
void activate(GatedFunction function, const HeadRows& merged, int rows, int width, float* out);

}  // namespace saker::kernels
