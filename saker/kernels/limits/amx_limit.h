// SPDX-License-Identifier: Apache-2.0
#pragma once

// The peak rate of products on tiles, see limits.h.

namespace saker::kernels::amx {

// Operations of one call: 4 independent products of 16 x 16 x 32 multiply-adds, kTileLoops times.
inline constexpr long kTileLoops = 1L << 16;
inline constexpr double kTileOperations = 4.0 * 2 * 16 * 16 * 32 * kTileLoops;

// REQUIRES: the instruction set "amx" can run.
void multiply_tiles();

}  // namespace saker::kernels::amx
