// SPDX-License-Identifier: Apache-2.0
// Matrix products of one instruction set where codes with many rows use cpu/gemm/winograd.h.
#include "saker/kernels/cpu/gemm/products.h"

namespace saker::kernels::SAKER_ISA {

extern const LinearBodies linear_bodies;
extern const LinearBodies winograd_linear_bodies;

namespace {

template <typename Format>
const Products* products_by_winograd() {
  return &FormatProducts<WinogradFormat<Format>>::kProducts;
}

// Null where plain products multiply so many rows of x.
const Products* products_of(const PackedMatrix& weight, int rows) {
  if (rows <= kByteRows || (weight.has_small_floats() && rows <= kPassRows)) {
    return nullptr;
  }
  if (weight.is_narrow() && weight.code_bits < 5) {
    return &narrow_winograd_products[weight.code_bits - 2];
  }
  switch (weight.kind) {
    case PackedKind::kNibble:
      return products_by_winograd<NibbleFormat>();
    case PackedKind::kByte:
      return weight.code_bits == 5   ? products_by_winograd<HalvesFormat<5>>()
             : weight.code_bits == 6 ? products_by_winograd<HalvesFormat<6>>()
                                     : products_by_winograd<ByteFormat>();
    case PackedKind::kE2m1:
      return products_by_winograd<E2m1Format>();
    default:
      return nullptr;
  }
}

int micro_panel_count(const PackedMatrix& weight, int rows) {
  const Products* products = products_of(weight, rows);
  return products != nullptr ? products->micro_panel_count(weight, rows)
                             : linear_bodies.micro_panel_count(weight, rows);
}

std::size_t prepared_bytes(const PackedMatrix& weight, const MicroPanels& micro_panels) {
  const Products* products = products_of(weight, micro_panels.rows);
  return products != nullptr ? products->prepared_bytes(weight, micro_panels)
                             : linear_bodies.prepared_bytes(weight, micro_panels);
}

void prepare_micro_panel(
    const PackedMatrix& weight,
    const InputRows& x,
    const MicroPanels& micro_panels,
    int micro_panel,
    std::byte* prepared
) {
  const Products* products = products_of(weight, micro_panels.rows);
  const auto prepare = products != nullptr ? products->prepare : linear_bodies.prepare;
  prepare(weight, x, micro_panels, micro_panel, prepared);
}

void multiply(const PackedMatrix& weight, const LinearTile& tile) {
  const Products* products = products_of(weight, tile.micro_panels.rows);
  const auto multiply_tile = products != nullptr ? products->multiply : linear_bodies.multiply;
  multiply_tile(weight, tile);
}

}  // namespace

const LinearBodies winograd_linear_bodies = {
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
