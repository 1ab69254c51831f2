// SPDX-License-Identifier: Apache-2.0
#pragma once

// A micro-panel of rows of x times a panel of unpacked weights.

#include "saker/kernels/cpu/gemm/unpack.h"

namespace saker::kernels::SAKER_ISA {

// Move the sums of kRows rows between registers and memory.
template <int kRows>
[[gnu::always_inline]] inline void load_sums(
    const float (*sums)[kBlockStep][kBlockRows], F32x16 (&acc)[kRows][kBlockStep]
) {
  unroll<kRows>([&](auto row) {
    unroll<kBlockStep>([&](auto b) { acc[row.kValue][b.kValue] = load(sums[row.kValue][b.kValue]); }
    );
  });
}

template <int kRows>
[[gnu::always_inline]] inline void store_sums(
    const F32x16 (&acc)[kRows][kBlockStep], float (*sums)[kBlockStep][kBlockRows]
) {
  unroll<kRows>([&](auto row) {
    unroll<kBlockStep>([&](auto b) { store(sums[row.kValue][b.kValue], acc[row.kValue][b.kValue]); }
    );
  });
}

// sums += panel[first ..][..] * inputs for kRows rows; the chains stay in registers.
template <typename Format, int kRows>
  requires(!kIsWinograd<Format>)
[[gnu::always_inline]] inline void multiply_panel(
    const typename Format::Operand::Input (*panel)[kBlockStep][kBlockRows],
    const typename Format::Operand::Input* inputs,
    int count,
    typename Format::Operand::Sum (&acc)[kRows][kBlockStep]
) {
  using Operand = typename Format::Operand;
#pragma GCC unroll 4
  for (int i = 0; i < count; ++i) {
    typename Operand::Weight w[kBlockStep];
    unroll<kBlockStep>([&](auto b) { w[b.kValue] = Operand::load_panel(panel[i][b.kValue]); });
    unroll<kRows>([&](auto row) {
      unroll<kBlockStep>([&](auto b) {
        acc[row.kValue][b.kValue] =
            Operand::step(acc[row.kValue][b.kValue], w[b.kValue], inputs[row.kValue]);
      });
    });
    inputs += kRows;
  }
}

// As above, by Winograd's products.
template <typename Format, int kRows>
  requires(kIsWinograd<Format>)
[[gnu::always_inline]] inline void multiply_panel(
    const typename Format::Operand::Input (*panel)[kBlockStep][kBlockRows],
    const typename Format::Operand::Input* inputs,
    int count,
    typename Format::Operand::Sum (&acc)[kRows][kBlockStep]
) {
  for (int i = 0; i < count; i += 2) {
    typename Format::Operand::Weight w[2][kBlockStep];
    unroll<kBlockStep>([&](auto b) {
      w[0][b.kValue] = load_u32(panel[i][b.kValue]);
      w[1][b.kValue] = load_u32(panel[i + 1][b.kValue]);
      pin_register(w[0][b.kValue]);
      pin_register(w[1][b.kValue]);
    });
    add_winograd_step(w[0], w[1], inputs, acc);
    inputs += 2 * kRows;
  }
}

// Sets the start values of the sums of the panel's group g.
template <typename Format, int kRows>
[[gnu::always_inline]] inline void start_group(
    const TileMemory<Format>& memory,
    int g,
    const float* numbers,
    typename Format::Operand::Sum (&acc)[kRows][kBlockStep]
) {
  if constexpr (kIsWinograd<Format>) {
    typename Format::Operand::Sum own[kBlockStep];
    unroll<kBlockStep>([&](auto b) { own[b.kValue] = load_u32(memory.starts[g][b.kValue]); });
    start_winograd_sums(numbers + 2 * kRows, acc);
    add_own_products(own, acc);
  } else {
    clear(acc);
  }
}

// Adds the products of the panel's group g, summed in acc, to the sums of one micro-panel. The
// compiler places y: sums in memory, read and written by each group, slow prefill by a tenth.
template <typename Format, int kRows>
[[gnu::always_inline]] inline void add_group_products(
    const TileMemory<Format>& memory,
    int g,
    const float* numbers,
    const typename Format::Operand::Sum (&acc)[kRows][kBlockStep],
    F32x16 (&y)[kRows][kBlockStep]
) {
  unroll<kBlockStep>([&](auto b) {
    const GroupScaleBias terms = {
        load(memory.scales[g][b.kValue]), load(memory.factors[g][b.kValue])
    };
    unroll<kRows>([&](auto row) {
      F32x16& sum = y[row.kValue][b.kValue];
      sum = add_group<Format, kRows>(sum, acc[row.kValue][b.kValue], numbers, row.kValue, terms);
    });
  });
}

// Adds the panel's products to the sums of one micro-panel.
template <typename Format, int kRows>
void multiply_micro_panel(
    const PackedMatrix& weight,
    const PanelRange& range,
    const TileMemory<Format>& memory,
    const MicroPanel<typename Format::Operand::Input>& x,
    float (*sums)[kBlockStep][kBlockRows]
) {
  constexpr int kPerOperand = Format::Operand::kPerOperand;
  typename Format::Operand::Sum acc[kRows][kBlockStep];
  const auto* inputs = x.inputs + range.first / kPerOperand * kRows;
  if constexpr (!kGrouped<Format>) {
    load_sums<kRows>(sums, acc);
    multiply_panel<Format, kRows>(memory.panel, inputs, inputs_per_row<Format>(range.count), acc);
    store_sums<kRows>(acc, sums);
  } else {
    const int group_inputs = weight.group / kPerOperand;
    const int first_group = range.first / weight.group;
    F32x16 y[kRows][kBlockStep];
    load_sums<kRows>(sums, y);
    for (int g = 0; g < range.count / weight.group; ++g) {
      const float* numbers = x.numbers + (first_group + g) * kGroupNumbers<Format> * kRows;
      start_group<Format, kRows>(memory, g, numbers, acc);
      multiply_panel<Format, kRows>(
          memory.panel + g * group_inputs, inputs + g * group_inputs * kRows, group_inputs, acc
      );
      add_group_products<Format, kRows>(memory, g, numbers, acc, y);
    }
    store_sums<kRows>(y, sums);
  }
}

template <typename Format, int kRows = rows_of_micro_panel<Format>()>
void multiply_micro_panel_rows(
    const PackedMatrix& weight,
    const PanelRange& range,
    const TileMemory<Format>& memory,
    const MicroPanel<typename Format::Operand::Input>& x,
    float (*sums)[kBlockStep][kBlockRows]
) {
  // If there are several micro-panels, each has at least half of the maximum rows.
  if constexpr (kRows >= rows_of_micro_panel<Format>() / 2) {
    if (x.rows == kRows) {
      multiply_micro_panel<Format, kRows>(weight, range, memory, x, sums);
    } else {
      multiply_micro_panel_rows<Format, kRows - 1>(weight, range, memory, x, sums);
    }
  }
}

}  // namespace saker::kernels::SAKER_ISA
