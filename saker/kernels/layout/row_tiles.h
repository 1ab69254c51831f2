// SPDX-License-Identifier: Apache-2.0
#pragma once

// Cuts many small independent rows into tiles for the thread pool. Few rows run on the calling
// thread.

#include "saker/kernels/cpu/runtime/thread_pool.h"

#include <algorithm>
#include <cstdint>

namespace saker::kernels {

// Calls body(row) for each row in [0, rows). `row_floats`: floats that one row reads and writes.
template <typename Body>
void each_row(int rows, std::int64_t row_floats, Body body) {
  // A tile takes a few microseconds. Below two tiles the hand-over costs more than it saves.
  constexpr std::int64_t kTileFloats = 1 << 14;
  const int tile = static_cast<int>(std::clamp<std::int64_t>(kTileFloats / row_floats, 1, rows));
  const int tiles = (rows + tile - 1) / tile;
  const auto run = [&](int index) {
    const int end = std::min(rows, (index + 1) * tile);
    for (int row = index * tile; row < end; ++row) {
      body(row);
    }
  };
  if (tiles < 2) {
    run(0);
    return;
  }
  thread_pool().run(tiles, run);
}

}  // namespace saker::kernels
