// SPDX-License-Identifier: Apache-2.0
#pragma once

// Rows of x for affine codes on tiles: int16, each cut into an upper and a lower signed byte. A
// micro-panel holds, per step of 64 columns, the upper bytes of its rows, then the lower ones.
// After all steps come, per group, the numbers of its rows (see MicroPanel in
// cpu/gemm/micro_panels.h) as if there were sixteen rows. Missing rows and columns are zeros.

#include "saker/kernels/cpu/amx/bytes.h"
#include "saker/kernels/cpu/amx/linear_inputs.h"
#include "saker/kernels/cpu/gemm/group_steps.h"

namespace saker::kernels::SAKER_ISA {

inline constexpr int kByteColumns = 64;              // Per step.
inline constexpr int kRowNumbers = 2 * kTileHeight;  // Per group.

inline std::size_t byte_step_bytes(int width) {
  return std::size_t{2} * kByteColumns * static_cast<std::size_t>(width);
}

inline std::size_t byte_input_bytes(const PackedMatrix& weight, int width) {
  const int steps = (weight.columns + kByteColumns - 1) / kByteColumns;
  return steps * byte_step_bytes(width);
}

inline std::size_t code_micro_panel_bytes(const PackedMatrix& weight, int width) {
  return byte_input_bytes(weight, width) + sizeof(float) * weight.groups() * kRowNumbers;
}

// Rows for which micro-panels have space. A single one fills half a tile or a whole one (see
// code_rows.h).
inline int code_width(const MicroPanels& micro_panels) {
  const int alone = micro_panels.rows <= kTileHeight / 2 ? kTileHeight / 2 : kTileHeight;
  return micro_panels.count == 1 ? alone : micro_panels.first_row(1);
}

struct CodeMicroPanel {
  const std::byte* inputs;  // One step after the other.
  const float* numbers;     // [groups][2][16]
  int width;                // Rows.

  // The upper bytes from column k on, row by row at kTileStride.
  const std::byte* upper(int k) const {
    return inputs + k / kByteColumns * byte_step_bytes(width) + k % kByteColumns;
  }

  // From the upper bytes of a step to the lower ones.
  std::ptrdiff_t upper_bytes() const {
    return static_cast<std::ptrdiff_t>(byte_step_bytes(width) / 2);
  }
};

inline CodeMicroPanel code_micro_panel(
    const PackedMatrix& weight,
    const MicroPanels& micro_panels,
    const std::byte* prepared,
    int micro_panel
) {
  const int width = code_width(micro_panels);
  const std::byte* inputs = prepared + micro_panel * code_micro_panel_bytes(weight, width);
  return {inputs, reinterpret_cast<const float*>(inputs + byte_input_bytes(weight, width)), width};
}

// The column of byte i of a tile's row.
template <typename Format>
struct CodeOrder {
  static constexpr int from(int i) { return i / 8 * 8 + FewRows<Format>::Type::column(i % 8); }
};

// Rounds 64 columns of a row, which begin at a group or inside one, to integers and cuts these into
// bytes. Adds the integers to the sums of their groups. Past `groups` groups writes zeros.
template <typename Format, int kGroup>
[[gnu::always_inline]] inline void prepare_step(
    const float* from,
    const float* inverses,
    int groups,
    U32x16* sums,
    std::byte* upper,
    std::byte* lower
) {
  U32x16 integers[kByteColumns / kLanes] = {};
#pragma GCC unroll 4
  for (int v = 0; v < kByteColumns / kLanes; ++v) {
    const int group = v * kLanes / kGroup;
    if (group == 0 || group < groups) {
      const F32x16 x = load(from + v * kLanes);
      integers[v] = to_int(mul(x, broadcast(inverses[group])));
      sums[group] = add_u32(sums[group], integers[v]);
    }
  }
  store_bytes_apart<CodeOrder<Format>>(integers, upper, lower);
}

// Prepares some groups of a row, kGroupsAtOnce at most, from column k on.
template <typename Format, int kGroup>
void prepare_groups(const float* from, int k, int groups, const CodeMicroPanel& to, int row) {
  constexpr int kStepGroups = kGroup < kByteColumns ? kByteColumns / kGroup : 1;
  const Int16Steps steps = group_steps<kGroup>(from, groups);
  alignas(64) float inverses[kGroupsAtOnce];
  store(inverses, steps.inverse);
  U32x16 sums[kGroupsAtOnce] = {};
  for (int g = 0; g < groups; g += kStepGroups) {
#pragma GCC unroll 2
    for (int i = 0; i < kGroup; i += kByteColumns) {
      const int column = g * kGroup + i;
      auto* upper = const_cast<std::byte*>(to.upper(k + column)) + row * kTileStride;
      std::byte* lower = upper + to.upper_bytes();
      prepare_step<Format, kGroup>(from + column, inverses + g, groups - g, sums + g, upper, lower);
    }
  }
  float* numbers = const_cast<float*>(to.numbers) + k / kGroup * kRowNumbers + row;
  store_numbers(steps, sums, groups, kTileHeight, kRowNumbers, numbers);
}

template <typename Format>
void prepare_code_tiles(
    const PackedMatrix& weight,
    const InputRows& x,
    const MicroPanels& micro_panels,
    int micro_panel,
    std::byte* prepared
) {
  const CodeMicroPanel to = code_micro_panel(weight, micro_panels, prepared, micro_panel);
  const int first = micro_panels.first_row(micro_panel);
  const int rows = micro_panels.first_row(micro_panel + 1) - first;
  if (rows < to.width) {
    __builtin_memset(
        const_cast<std::byte*>(to.inputs), 0, code_micro_panel_bytes(weight, to.width)
    );
  }
  alignas(64) float values[kGroupsAtOnce * kLargestGroup];
  with_group<16>(weight, [&]<int kGroup>() {
    constexpr int kColumns = kGroupsAtOnce * kGroup;
    for (int row = 0; row < rows; ++row) {
      for (int k = 0; k < weight.columns; k += kColumns) {
        const int columns = smaller(kColumns, weight.columns - k);
        const float* from = find_inputs(x, first + row, k, columns, values);
        prepare_groups<Format, kGroup>(from, k, columns / kGroup, to, row);
      }
    }
  });
}

}  // namespace saker::kernels::SAKER_ISA
