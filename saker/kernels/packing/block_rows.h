// SPDX-License-Identifier: Apache-2.0
#pragma once

// The sixteen rows of an NR block as the checkpoint holds them.

#include "saker/kernels/layout/packed_matrix.h"

#include <cstddef>
#include <cstdint>

namespace saker::kernels {

// One place in each of sixteen rows.
struct RowPlaces {
  const std::byte* at[kBlockRows] = {};

  RowPlaces moved(std::size_t bytes) const {
    RowPlaces result;
    for (int lane = 0; lane < kBlockRows; ++lane) {
      result.at[lane] = at[lane] + bytes;
    }
    return result;
  }
};

// The rows of one block. Rows past the end read zeros.
struct BlockRows {
  RowPlaces weight;
  RowPlaces scales;
  RowPlaces biases;
};

// Columns that are packed together: their lines stay in L1 until all lanes are written. A multiple
// of all group sizes.
inline constexpr int kChunk = 256;

// Words of sixteen rows that had to be widened first.
struct WideRows {
  std::uint32_t words[kBlockRows][kChunk / 2];

  RowPlaces places() const {
    RowPlaces result;
    for (int lane = 0; lane < kBlockRows; ++lane) {
      result.at[lane] = reinterpret_cast<const std::byte*>(words[lane]);
    }
    return result;
  }
};

}  // namespace saker::kernels
