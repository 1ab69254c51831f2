// SPDX-License-Identifier: Apache-2.0
#pragma once

// Converts words of codes to halves and names (narrow_codes.h), and reads single codes.

#include "saker/kernels/layout/packed_matrix.h"

#include <cstddef>
#include <cstdint>

namespace saker::kernels {

// Converts `count` lines, whole runs of columns, of nibbles or bytes whose codes have
// `code_bits` bits (2, 3, 5 or 6), or of bytes below 16 (4). `to` gets code_bits / 4 of their bytes
// for nibbles, code_bits / 8 for bytes.
void narrow_lines(
    const std::uint32_t (*lines)[kBlockRows], int count, int code_bits, std::byte* to
);

// The code of column k of row `lane`, in halves or names that begin at `lines`.
std::uint32_t narrow_code(const std::byte* lines, int code_bits, int k, int lane);

}  // namespace saker::kernels
