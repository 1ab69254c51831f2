// SPDX-License-Identifier: Apache-2.0
// Matrix products of one instruction set; linear_bodies.h states the order of additions.
#include "saker/kernels/cpu/gemm/products.h"

#if defined(SAKER_IN_PLACE)
#include "saker/kernels/cpu/gemm/bf16_format.h"
#endif

namespace saker::kernels::SAKER_ISA {

extern const LinearBodies linear_bodies;

namespace {

const Products& products_of(const PackedMatrix& weight) {
  if (weight.is_narrow()) {
    return weight.code_bits < 5 ? narrow_products[weight.code_bits - 2]
                                : halves_products[weight.code_bits - 5];
  }
  if (weight.has_small_floats()) {
    return small_float_products[weight.kind == PackedKind::kE2m1 ? 0 : 1];
  }
  return *with_format(weight, [](auto format) {
    return &FormatProducts<decltype(format)>::kProducts;
  });
}

int micro_panel_count(const PackedMatrix& weight, int rows) {
  return products_of(weight).micro_panel_count(weight, rows);
}

std::size_t prepared_bytes(const PackedMatrix& weight, const MicroPanels& micro_panels) {
  return products_of(weight).prepared_bytes(weight, micro_panels);
}

void prepare_micro_panel(
    const PackedMatrix& weight,
    const InputRows& x,
    const MicroPanels& micro_panels,
    int micro_panel,
    std::byte* prepared
) {
  products_of(weight).prepare(weight, x, micro_panels, micro_panel, prepared);
}

void multiply(const PackedMatrix& weight, const LinearTile& tile) {
  products_of(weight).multiply(weight, tile);
}

}  // namespace

const LinearBodies linear_bodies = {
    micro_panel_count,
    kTileRows,
    kBlockStep,
    {.small_floats = PackedOrder::kInterleavedNr16, .bf16 = kBf16Order},
    kInPlace,
    prepared_bytes,
    prepare_micro_panel,
    multiply,
};

}  // namespace saker::kernels::SAKER_ISA
