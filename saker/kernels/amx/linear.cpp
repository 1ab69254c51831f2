// SPDX-License-Identifier: Apache-2.0
// Matrix products on AMX's tiles; where weights are float32 or float16, on vectors. linear_bodies.h
// states the order of additions.
#include "saker/kernels/amx/linear_panels.h"
#include "saker/kernels/amx/linear_rows.h"
#include "saker/kernels/cpu/linear_bodies.h"
#include "saker/kernels/cpu/linear_panels.h"
#include "saker/kernels/cpu/linear_prepare.h"
#include "saker/kernels/cpu/linear_rows.h"

namespace saker::kernels::SAKER_ISA {

extern const LinearBodies linear_bodies;

namespace {

bool on_tiles(const PackedMatrix& weight) {
  return weight.order == PackedOrder::kInTiles;
}

// Calls function with the format of a weight that is not on tiles.
template <typename Function>
auto with_vector_format(const PackedMatrix& weight, const Function& function) {
  return weight.kind == PackedKind::kFloat16 ? function(Float16Format())
                                             : function(Float32Format());
}

int sliver_count(const PackedMatrix& weight, int rows) {
  return on_tiles(weight) ? (rows + kTileHeight - 1) / kTileHeight : slivers_for(rows);
}

std::size_t prepared_bytes(const PackedMatrix& weight, const Slivers& slivers) {
  if (on_tiles(weight)) {
    const auto steps = static_cast<std::size_t>(slivers.count) * tile_steps(weight);
    return steps * kTilePairs * line_bytes(slivers);
  }
  return with_vector_format(weight, [&](auto format) {
    return row_bytes<decltype(format)>(weight) * static_cast<std::size_t>(slivers.rows);
  });
}

void prepare_sliver(
    const PackedMatrix& weight,
    const InputRows& x,
    const Slivers& slivers,
    int sliver,
    std::byte* prepared
) {
  if (on_tiles(weight)) {
    prepare_tiles(weight, x, slivers, sliver, prepared);
    return;
  }
  with_vector_format(weight, [&](auto format) {
    prepare<decltype(format)>(weight, x, slivers, sliver, prepared);
  });
}

void multiply(const PackedMatrix& weight, const LinearTile& tile) {
  const bool few = tile.slivers.count == 1;
  if (on_tiles(weight)) {
    few ? multiply_few_tiled(weight, tile) : multiply_many_tiled(weight, tile);
    return;
  }
  with_vector_format(weight, [&](auto format) {
    using Format = decltype(format);
    few ? multiply_few<Format>(weight, tile) : multiply_many<Format>(weight, tile);
  });
}

}  // namespace

const LinearBodies linear_bodies = {
    sliver_count,
    kPanelSlivers,
    kBlockStep,
    {.codes = PackedOrder::kInTiles, .bf16 = PackedOrder::kInTiles},
    true,
    prepared_bytes,
    prepare_sliver,
    multiply,
};

}  // namespace saker::kernels::SAKER_ISA
