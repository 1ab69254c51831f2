// SPDX-License-Identifier: Apache-2.0
#pragma once

// NR blocks in the order kTileOrder, see packed_matrix.h.

#include "saker/kernels/layout/weight_format.h"
#include "saker/kernels/packing/block_rows.h"

#include <cstddef>

namespace saker::kernels {

// Packs the rows of one block into matrix.block_bytes() bytes at `to`.
void pack_tiled_block(
    const BlockRows& rows, const PackedMatrix& matrix, const WeightFormat& format, std::byte* to
);

}  // namespace saker::kernels
