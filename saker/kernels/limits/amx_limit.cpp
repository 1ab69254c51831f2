// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/limits/amx_limit.h"

#include "saker/kernels/cpu/amx/tile.h"
#include "saker/kernels/cpu/simd/unroll.h"

namespace saker::kernels::amx {

void multiply_tiles() {
  const Tiles registers(kTileHeight);
  unroll<8>([](auto tile) { tile_clear<tile.kValue>(); });
  for (long i = 0; i < kTileLoops; ++i) {
    unroll<4>([](auto sums) {
      tile_add_products<sums.kValue, kLeft + sums.kValue / 2, kRight + sums.kValue % 2>();
    });
  }
}

}  // namespace saker::kernels::amx
