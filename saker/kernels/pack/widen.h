// SPDX-License-Identifier: Apache-2.0
#pragma once

// Rows of codes that the CPU bodies do not read as they are, to the words that they read: codes of
// 2 and 3 bits to nibbles, of 5 and 6 bits to bytes.

#include <cstddef>
#include <cstdint>

namespace saker::kernels {

// `columns` codes of `bits` bits, a multiple of 32, from the code at `from`.
void widen_codes(const std::byte* from, int bits, int columns, std::uint32_t* words);

}  // namespace saker::kernels
