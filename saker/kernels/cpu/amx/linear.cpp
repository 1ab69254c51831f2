// SPDX-License-Identifier: Apache-2.0
// Matrix products on AMX tiles. Vectors multiply float32 and float16 weights, and affine codes if
// rows of x are few. linear_bodies.h states the order of additions.
#include "saker/kernels/cpu/amx/code_panels.h"
#include "saker/kernels/cpu/amx/code_rows.h"
#include "saker/kernels/cpu/amx/linear_panels.h"
#include "saker/kernels/cpu/amx/linear_rows.h"
#include "saker/kernels/cpu/dispatch/linear_bodies.h"
#include "saker/kernels/cpu/gemm/few_rows.h"
#include "saker/kernels/cpu/gemm/integer_inputs.h"
#include "saker/kernels/cpu/gemm/many_rows.h"
#include "saker/kernels/cpu/gemm/prepare.h"

namespace saker::kernels::SAKER_ISA {

extern const LinearBodies linear_bodies;

namespace {

// For affine codes: more rows of x than this are faster on tiles.
constexpr int kVectorRows = 3;

// How a weight times so many rows is multiplied.
enum class Path { kTiles, kCodeTiles, kVectors };

template <typename Function>
auto with_code_format(const PackedMatrix& weight, const Function& function) {
  return weight.kind == PackedKind::kNibble ? function(NibbleFormat()) : function(ByteFormat());
}

Path path_of(const PackedMatrix& weight, int rows) {
  if (weight.order == PackedOrder::kTileOrder) {
    return Path::kTiles;
  }
  return weight.has_groups() && rows > kVectorRows ? Path::kCodeTiles : Path::kVectors;
}

// Calls function with the format of a weight that vectors multiply.
template <typename Function>
auto with_vector_format(const PackedMatrix& weight, const Function& function) {
  switch (weight.kind) {
    case PackedKind::kFloat32:
      return function(Float32Format());
    case PackedKind::kFloat16:
      return function(Float16Format());
    case PackedKind::kNibble:
      return weight.code_bits == 2   ? function(TwoBitBytesFormat())
             : weight.code_bits == 3 ? function(HalvesFormat<3>())
                                     : function(NibbleBytesFormat());
    default:
      return weight.code_bits == 4   ? function(NamesBytesFormat())
             : weight.code_bits == 5 ? function(HalvesFormat<5>())
             : weight.code_bits == 6 ? function(HalvesFormat<6>())
                                     : function(ByteBytesFormat());
  }
}

int micro_panel_count(const PackedMatrix& weight, int rows) {
  return path_of(weight, rows) == Path::kVectors ? micro_panels_for<Float32Format>(rows)
                                                 : (rows + kTileHeight - 1) / kTileHeight;
}

std::size_t prepared_bytes(const PackedMatrix& weight, const MicroPanels& micro_panels) {
  const auto count = static_cast<std::size_t>(micro_panels.count);
  switch (path_of(weight, micro_panels.rows)) {
    case Path::kTiles:
      return count * tile_steps(weight) * kTilePairs * line_bytes(micro_panels);
    case Path::kCodeTiles:
      return count * code_micro_panel_bytes(weight, code_width(micro_panels));
    default:
      return with_vector_format(weight, [&](auto format) {
        return row_bytes<decltype(format)>(weight) * static_cast<std::size_t>(micro_panels.rows);
      });
  }
}

void prepare_micro_panel(
    const PackedMatrix& weight,
    const InputRows& x,
    const MicroPanels& micro_panels,
    int micro_panel,
    std::byte* prepared
) {
  switch (path_of(weight, micro_panels.rows)) {
    case Path::kTiles:
      return prepare_tiles(weight, x, micro_panels, micro_panel, prepared);
    case Path::kCodeTiles:
      return with_code_format(weight, [&](auto format) {
        prepare_code_tiles<decltype(format)>(weight, x, micro_panels, micro_panel, prepared);
      });
    default:
      return with_vector_format(weight, [&](auto format) {
        prepare<decltype(format)>(weight, x, micro_panels, micro_panel, prepared);
      });
  }
}

void multiply_on_vectors(const PackedMatrix& weight, const LinearTile& tile) {
  with_vector_format(weight, [&](auto format) {
    using Format = decltype(format);
    if constexpr (kGrouped<Format>) {
      multiply_few<Format, kVectorRows>(weight, tile);
    } else {
      tile.micro_panels.count == 1 ? multiply_few<Format>(weight, tile)
                                   : multiply_many<Format>(weight, tile);
    }
  });
}

void multiply(const PackedMatrix& weight, const LinearTile& tile) {
  switch (path_of(weight, tile.micro_panels.rows)) {
    case Path::kTiles:
      return tile.micro_panels.count == 1 ? multiply_few_tiled(weight, tile)
                                          : multiply_many_tiled(weight, tile);
    case Path::kCodeTiles:
      return with_code_format(weight, [&](auto format) {
        tile.micro_panels.count == 1 ? multiply_code_rows<decltype(format)>(weight, tile)
                                     : multiply_codes<decltype(format)>(weight, tile);
      });
    default:
      return multiply_on_vectors(weight, tile);
  }
}

}  // namespace

const LinearBodies linear_bodies = {
    micro_panel_count,
    kPanelMicroPanels* kTileHeight,
    kBlockStep,
    {.small_floats = PackedOrder::kTileOrder, .bf16 = PackedOrder::kTileOrder},
    true,
    prepared_bytes,
    prepare_micro_panel,
    multiply,
};

}  // namespace saker::kernels::SAKER_ISA
