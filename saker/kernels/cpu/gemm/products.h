// SPDX-License-Identifier: Apache-2.0
#pragma once

// The products of one format as a table, so that a set's formats can be compiled apart.

#include "saker/kernels/cpu/dispatch/linear_bodies.h"
#include "saker/kernels/cpu/gemm/few_rows.h"
#include "saker/kernels/cpu/gemm/many_rows.h"
#include "saker/kernels/cpu/gemm/prepare.h"

#if defined(SAKER_EMULATE_AVX512) || defined(__AVX512F__)
#include "saker/kernels/cpu/gemm/integer_inputs.h"
#endif

namespace saker::kernels::SAKER_ISA {

// See LinearBodies.
struct Products {
  int (*micro_panel_count)(const PackedMatrix& weight, int rows);
  std::size_t (*prepared_bytes)(const PackedMatrix& weight, const MicroPanels& micro_panels);
  void (*prepare)(
      const PackedMatrix& weight,
      const InputRows& x,
      const MicroPanels& micro_panels,
      int micro_panel,
      std::byte* prepared
  );
  void (*multiply)(const PackedMatrix& weight, const LinearTile& tile);
};

// E2M1 and E4M3, see small_float_products.cpp.
extern const Products small_float_products[2];
// Codes of 2 and of 3 bits, and names, see narrow_products.cpp.
extern const Products narrow_products[3];
// As above by Winograd's products, see narrow_winograd_products.cpp.
extern const Products narrow_winograd_products[3];
// Codes of 5 and of 6 bits, see halves_products.cpp.
extern const Products halves_products[2];

template <typename Format>
constexpr bool has_own_products() {
  return requires { &Format::multiply; };
}

// Each micro-panel times the tile's weights, which stay in L2 meanwhile.
template <typename Format>
void multiply_passes(const PackedMatrix& weight, const LinearTile& tile) {
  const int end = tile.first_micro_panel + tile.micro_panel_count;
  for (int micro_panel = tile.first_micro_panel; micro_panel < end; ++micro_panel) {
    const int first = tile.micro_panels.first_row(micro_panel);
    LinearTile pass = tile;
    pass.prepared += first * row_bytes<Format>(weight);
    pass.micro_panels = {tile.micro_panels.first_row(micro_panel + 1) - first, 1};
    pass.first_micro_panel = 0;
    pass.micro_panel_count = 1;
    pass.out += std::ptrdiff_t{first} * weight.rows;
    multiply_few<Format>(weight, pass);
  }
}

template <typename Format>
struct FormatProducts {
  // Calls function with the format that multiplies so many rows of x.
  template <typename Function>
  static auto with_format_for(int rows, const Function& function) {
    return rows <= kByteRows ? function(typename FewRows<Format>::Type()) : function(Format());
  }

  static int micro_panel_count(const PackedMatrix& weight, int rows) {
    return with_format_for(rows, [&](auto format) {
      using Used = decltype(format);
      return takes_passes<Used>(weight, rows) ? (rows + kPass - 1) / kPass
                                              : micro_panels_for<Used>(rows);
    });
  }

  static std::size_t prepared_bytes(const PackedMatrix& weight, const MicroPanels& micro_panels) {
    return with_format_for(micro_panels.rows, [&](auto format) {
      using Used = decltype(format);
      const auto rows = static_cast<std::size_t>(micro_panels.rows);
      if constexpr (has_own_products<Used>()) {
        return Used::row_bytes(weight) * rows;
      } else {
        return row_bytes<Used>(weight) * rows;
      }
    });
  }

  static void prepare_micro_panel(
      const PackedMatrix& weight,
      const InputRows& x,
      const MicroPanels& micro_panels,
      int micro_panel,
      std::byte* prepared
  ) {
    with_format_for(micro_panels.rows, [&](auto format) {
      using Used = decltype(format);
      if constexpr (has_own_products<Used>()) {
        Used::prepare(weight, x, micro_panels, micro_panel, prepared);
      } else {
        prepare<Used>(weight, x, micro_panels, micro_panel, prepared);
      }
    });
  }

  static void multiply(const PackedMatrix& weight, const LinearTile& tile) {
    with_format_for(tile.micro_panels.rows, [&](auto format) {
      using Used = decltype(format);
      if constexpr (has_own_products<Used>()) {
        Used::multiply(weight, tile);
      } else if constexpr (kIsOfBytes<Used>) {
        multiply_few<Used, kByteRows>(weight, tile);
      } else if (tile.micro_panels.count == 1 ||
                 takes_passes<Used>(weight, tile.micro_panels.rows)) {
        multiply_passes<Used>(weight, tile);
      } else {
        multiply_many<Used>(weight, tile);
      }
    });
  }

  static constexpr Products kProducts = {
      micro_panel_count, prepared_bytes, prepare_micro_panel, multiply
  };
};

}  // namespace saker::kernels::SAKER_ISA
