// SPDX-License-Identifier: Apache-2.0
#pragma once

// Rows of codes that the CPU bodies do not read as they are, to the words that they read: codes of
// 2 and 3 bits to nibbles, of 5 and 6 bits to bytes, mxfp8 with its scales to bf16.

#include <cstddef>
#include <cstdint>

namespace saker::kernels {

// `columns` codes of `bits` bits, a multiple of 32, from the code at `from`.
void widen_codes(const std::byte* from, int bits, int columns, std::uint32_t* words);

// `columns` values of mxfp8, whole groups, as pairs of bf16: code times scale, of which bf16 keeps
// the upper half. `from` and `scales` are those of the first column.
void widen_small_floats(
    const std::byte* from, const std::byte* scales, int columns, std::uint32_t* words
);

}  // namespace saker::kernels
