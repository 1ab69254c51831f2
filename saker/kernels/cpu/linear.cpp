// SPDX-License-Identifier: Apache-2.0
// Matrix products of one instruction set; linear_bodies.h states the order of additions.
#include "saker/kernels/cpu/linear_bodies.h"
#include "saker/kernels/cpu/linear_in_place.h"
#include "saker/kernels/cpu/linear_panels.h"
#include "saker/kernels/cpu/linear_prepare.h"
#include "saker/kernels/cpu/linear_rows.h"

namespace saker::kernels::SAKER_ISA {

extern const LinearBodies linear_bodies;

namespace {

int sliver_count(const PackedMatrix&, int rows) {
  return slivers_for(rows);
}

std::size_t prepared_bytes(const PackedMatrix& weight, const Slivers& slivers) {
  return with_format(weight, [&](auto format) {
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
  with_format(weight, [&](auto format) {
    prepare<decltype(format)>(weight, x, slivers, sliver, prepared);
  });
}

void multiply(const PackedMatrix& weight, const LinearTile& tile) {
  with_format(weight, [&](auto format) {
    using Format = decltype(format);
#if defined(SAKER_IN_PLACE)
    if (tile.slivers.count == 1 && weight.in_place()) {
      multiply_few_in_place(weight, tile);
      return;
    }
#endif
    if (tile.slivers.count == 1) {
      multiply_few<Format>(weight, tile);
    } else {
      multiply_many<Format>(weight, tile);
    }
  });
}

}  // namespace

const LinearBodies linear_bodies = {
    sliver_count,
    kTileSlivers,
    kBlockStep,
    PackedOrder::kInLanes,
    kInPlace,
    prepared_bytes,
    prepare_sliver,
    multiply,
};

}  // namespace saker::kernels::SAKER_ISA
