// SPDX-License-Identifier: Apache-2.0
#pragma once

// Blocks of GGUF files (layout/block_format.h) in the order of packed_matrix.h.

#include "saker/kernels/layout/block_format.h"
#include "saker/kernels/packing/block_rows.h"

#include <cstddef>
#include <cstdint>

namespace saker::kernels {

// The codes of one block: words of nibbles, or of bytes where they have more than 4 bits or are
// names of such codes, in order of columns. `words` has space for 256 columns.
void read_block_codes(BlockKind kind, const std::byte* block, std::uint32_t* words);

// Packs the terms of sixteen rows' blocks, one block each, behind their codes: a group's, or a
// super-block's.
void pack_block_terms(BlockKind kind, const RowPlaces& blocks, std::byte* to);

}  // namespace saker::kernels
