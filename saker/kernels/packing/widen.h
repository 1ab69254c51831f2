// SPDX-License-Identifier: Apache-2.0
#pragma once

// Widens rows of codes that the CPU bodies do not read directly: codes of 2 and 3 bits to nibbles,
// of 5 and 6 bits to bytes.

#include <cstddef>
#include <cstdint>

namespace saker::kernels {

// Widens `columns` codes (a multiple of 32) of `bits` bits, starting at `from`.
void widen_codes(const std::byte* from, int bits, int columns, std::uint32_t* words);

}  // namespace saker::kernels
