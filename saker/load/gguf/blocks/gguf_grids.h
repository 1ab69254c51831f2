// SPDX-License-Identifier: Apache-2.0
#pragma once

// The grids of ggml's IQ types (https://github.com/ggml-org/ggml, ggml-common.h): a code of these
// types names a row of values.

#include <cstdint>
#include <span>

namespace saker::load::gguf {

enum class Grid : std::uint8_t {
  kIq1,     // 2048 rows of eight: -1, 0, 1.
  kIq2Xxs,  // 256 rows of eight magnitudes: 8, 25, 43.
  kIq2Xs,   // 512 rows.
  kIq2S,    // 1024 rows.
  kIq3Xxs,  // 256 rows of four magnitudes: 4 to 62.
  kIq3S,    // 512 rows of four: odd, 1 to 15.
};

// The values of a grid, row by row. Any thread may call it.
std::span<const std::int8_t> grid_values(Grid grid);

}  // namespace saker::load::gguf
