// SPDX-License-Identifier: Apache-2.0
// Matrix products of one instruction set; linear_bodies.h states the order of additions.
#include "saker/kernels/cpu/dispatch/linear_bodies.h"
#include "saker/kernels/cpu/gemm/few_rows.h"
#include "saker/kernels/cpu/gemm/many_rows.h"
#include "saker/kernels/cpu/gemm/prepare.h"

#if defined(SAKER_EMULATE_AVX512) || defined(__AVX512F__)
#include "saker/kernels/cpu/gemm/integer_inputs.h"
#endif
#if defined(SAKER_IN_PLACE)
#include "saker/kernels/cpu/gemm/bf16_format.h"
#endif

namespace saker::kernels::SAKER_ISA {

extern const LinearBodies linear_bodies;

namespace {

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

// The products of a set. With kWinograd, codes with many rows use cpu/gemm/winograd.h.
template <bool kWinograd>
struct Products {
  // Calls function with the format that multiplies so many rows of x.
  template <typename Function>
  static auto with_format_for(const PackedMatrix& weight, int rows, const Function& function) {
    return with_format(weight, [&](auto format) {
      using Format = decltype(format);
      if (rows <= kByteRows) {
        return function(typename FewRows<Format>::Type());
      }
      if constexpr (kWinograd) {
        using Many = typename ManyRows<Format>::Type;
        if (weight.has_small_floats() && rows <= kPassRows) {
          return function(format);
        }
        return function(Many());
      } else {
        return function(format);
      }
    });
  }

  static int micro_panel_count(const PackedMatrix& weight, int rows) {
    return with_format_for(weight, rows, [&](auto format) {
      using Format = decltype(format);
      return takes_passes<Format>(weight, rows) ? (rows + kPass - 1) / kPass
                                                : micro_panels_for<Format>(rows);
    });
  }

  static std::size_t prepared_bytes(const PackedMatrix& weight, const MicroPanels& micro_panels) {
    return with_format_for(weight, micro_panels.rows, [&](auto format) {
      using Format = decltype(format);
      const auto rows = static_cast<std::size_t>(micro_panels.rows);
      if constexpr (has_own_products<Format>()) {
        return Format::row_bytes(weight) * rows;
      } else {
        return row_bytes<Format>(weight) * rows;
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
    with_format_for(weight, micro_panels.rows, [&](auto format) {
      using Format = decltype(format);
      if constexpr (has_own_products<Format>()) {
        Format::prepare(weight, x, micro_panels, micro_panel, prepared);
      } else {
        prepare<Format>(weight, x, micro_panels, micro_panel, prepared);
      }
    });
  }

  static void multiply(const PackedMatrix& weight, const LinearTile& tile) {
    with_format_for(weight, tile.micro_panels.rows, [&](auto format) {
      using Format = decltype(format);
      if constexpr (has_own_products<Format>()) {
        Format::multiply(weight, tile);
      } else if constexpr (kIsOfBytes<Format>) {
        multiply_few<Format, kByteRows>(weight, tile);
      } else if (tile.micro_panels.count == 1 ||
                 takes_passes<Format>(weight, tile.micro_panels.rows)) {
        multiply_passes<Format>(weight, tile);
      } else {
        multiply_many<Format>(weight, tile);
      }
    });
  }

  static constexpr LinearBodies kBodies = {
      micro_panel_count,
      kTileRows,
      kBlockStep,
      {.small_floats = PackedOrder::kInterleavedNr16, .bf16 = kBf16Order},
      kInPlace,
      prepared_bytes,
      prepare_micro_panel,
      multiply,
  };
};

}  // namespace

const LinearBodies linear_bodies = Products<false>::kBodies;
#if defined(SAKER_WINOGRAD)
extern const LinearBodies winograd_linear_bodies;

const LinearBodies winograd_linear_bodies = Products<true>::kBodies;
#endif

}  // namespace saker::kernels::SAKER_ISA
