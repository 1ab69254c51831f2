// SPDX-License-Identifier: Apache-2.0
#pragma once

// Converts the checkpoint's layout to packed_matrix.h's, and single rows back to float32.

#include "saker/base/tensor.h"
#include "saker/kernels/layout/packed_matrix.h"
#include "saker/kernels/layout/weight_format.h"

#include <cstddef>
#include <vector>

namespace saker::kernels {

// The packed layout of a weight of `rows` by `columns`, without data. Affine codes of 2 to 4 bits
// are read as nibbles, of 5 to 8 bits as bytes; kInterleavedNr16 stores them in their own width.
// All other kinds keep their width. `scales` is the dtype of the scales (codes only). Float32 and
// float16 use kInterleavedNr16.
PackedMatrix packed_layout(
    int rows, int columns, const WeightFormat& format, DType scales, const PackedOrders& orders
);

// Packs the rows of `parts`, which follow each other, into matrix.block_bytes() * matrix.blocks()
// bytes at `to`, on all threads. Shapes were checked.
void pack_rows(
    const std::vector<WeightTensors>& parts,
    const WeightFormat& format,
    const PackedMatrix& matrix,
    std::byte* to
);

// As pack_rows, for `count` NR blocks from `first` on.
void pack_row_blocks(
    const std::vector<WeightTensors>& parts,
    const WeightFormat& format,
    const PackedMatrix& matrix,
    int first,
    int count,
    std::byte* to
);

// True if the rows of `parts`, in this layout, can be multiplied in place by bodies that support it
// (LinearBodies::in_place).
bool fits_in_place(const std::vector<WeightTensors>& parts, const PackedMatrix& matrix);

// The address of each NR block of such parts.
std::vector<const std::byte*> find_blocks(const std::vector<WeightTensors>& parts);

// Row `row` in float32, `matrix.columns` values.
void unpack_row(const PackedMatrix& matrix, int row, float* values);

}  // namespace saker::kernels
