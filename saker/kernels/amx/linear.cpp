// SPDX-License-Identifier: Apache-2.0
// Matrix products on AMX's tiles; where weights are float32 or float16, on vectors. linear_bodies.h
// states the order of additions.
#include "saker/kernels/amx/linear_inputs.h"
#include "saker/kernels/amx/linear_panels.h"
#include "saker/kernels/amx/linear_rows.h"
#include "saker/kernels/cpu/linear_bodies.h"
#include "saker/kernels/cpu/linear_panels.h"
#include "saker/kernels/cpu/linear_prepare.h"
#include "saker/kernels/cpu/linear_rows.h"

namespace saker::kernels::SAKER_ISA {

extern const LinearBodies linear_bodies;

namespace {

template <typename Format>
constexpr bool kTiled = Format::Operand::kPerOperand == 2;

template <typename Format>
struct OnTiles {
  using Type = Format;
};

template <>
struct OnTiles<ByteFormat> {
  using Type = TiledByteFormat;
};

// with_format with the formats of tiles.
template <typename Function>
[[gnu::always_inline]] inline auto with_tile_format(
    const PackedMatrix& weight, const Function& function
) {
  return with_format(weight, [&](auto format) {
    return function(typename OnTiles<decltype(format)>::Type());
  });
}

int sliver_rows(const PackedMatrix& weight) {
  return with_tile_format(weight, [](auto format) {
    return kTiled<decltype(format)> ? kTileHeight : kSliverRows;
  });
}

std::size_t prepared_row_bytes(const PackedMatrix& weight) {
  return with_tile_format(weight, [&](auto format) {
    using Format = decltype(format);
    return kTiled<Format> ? tile_row_bytes(weight) : row_bytes<Format>(weight);
  });
}

void prepare_sliver(
    const PackedMatrix& weight,
    const InputRows& x,
    const Slivers& slivers,
    int sliver,
    std::byte* prepared
) {
  with_tile_format(weight, [&](auto format) {
    using Format = decltype(format);
    if constexpr (kTiled<Format>) {
      prepare_tiles<Format>(weight, x, slivers, sliver, prepared);
    } else {
      prepare<Format>(weight, x, slivers, sliver, prepared);
    }
  });
}

void multiply(const PackedMatrix& weight, const LinearTile& tile) {
  with_tile_format(weight, [&](auto format) {
    using Format = decltype(format);
    const bool few = tile.slivers.count == 1;
    if constexpr (kTiled<Format>) {
      few ? multiply_few_tiled<Format>(weight, tile) : multiply_many_tiled<Format>(weight, tile);
    } else {
      few ? multiply_few<Format>(weight, tile) : multiply_many<Format>(weight, tile);
    }
  });
}

}  // namespace

const LinearBodies linear_bodies = {
    sliver_rows,
    kBlockStep,
    prepared_row_bytes,
    prepare_sliver,
    multiply,
};

}  // namespace saker::kernels::SAKER_ISA
