// SPDX-License-Identifier: Apache-2.0
#pragma once

// The instruction sets that a test can run on this machine: those that the processor has, and
// AVX-512 and AMX by emulation.

#include "saker/kernels/layout/weight_format.h"

#include <string>
#include <string_view>
#include <vector>

namespace saker::kernels {

// Names for select_kernel_table; the emulated ones are made selectable by the first call.
std::vector<std::string> instruction_sets();

// What a set rounds inputs of products to: bf16, or integers of 16 bits with a step for each group.
enum class Rounding { kNone, kBf16, kInt16 };

// Rows of x that meet weights of this format.
Rounding linear_rounding(std::string_view set, const WeightFormat& format);

// Queries and weights of attention over pages.
// `bf16`: the pages' dtype, else float32; bits 16: not quantized.
Rounding attend_rounding(std::string_view set, bool bf16, int bits);

// How far an element of normal values may then be from the truth for queries rounded in the same
// way. Float32 sums, larger ones of codes than of the elements that they stand for; bf16 weights by
// 2^-9 of themselves, and no value is larger than 5; 64 integers for weights by 2^-16 of the
// largest each, which makes standard deviations of 8e-5 at most, six of which are allowed.
double attend_limit(std::string_view set, bool bf16, int bits);

}  // namespace saker::kernels
