// SPDX-License-Identifier: Apache-2.0
#pragma once

// Prepares rows of x for the products: micro-panels of interleaved rows, sums of groups, and pairs
// of bf16 or integers where these are multiplied.

#include "saker/kernels/cpu/gemm/steps.h"
#include "saker/kernels/cpu/gemm/tiles.h"
#include "saker/kernels/layout/lanes.h"

namespace saker::kernels::SAKER_ISA {

// Copies x[k .. k + count) of a row to `values`, padded by zeros to a multiple of 16.
inline void copy_inputs(const InputRows& x, int row, int k, int count, float* values) {
  const float* from = x.data + row * x.row_stride + k * x.column_stride;
  for (int i = 0; i < count; ++i) {
    values[i] = from[i * x.column_stride];
  }
  for (int i = count; i % 16 != 0; ++i) {
    values[i] = 0.0F;
  }
}

// A pointer to these values: in x if they can be read there, else to a copy in `values`.
inline const float* find_inputs(const InputRows& x, int row, int k, int count, float* values) {
  if (x.column_stride == 1 && count % 16 == 0) {
    return x.data + row * x.row_stride + k;
  }
  copy_inputs(x, row, k, count, values);
  return values;
}

// Scales sixteen values as the format's operands need it. The first one is of a column divisible by
// 16.
template <typename Format>
F32x16 input_lanes(F32x16 lanes) {
  if constexpr (!kGrouped<Format> || Format::Operand::kPerOperand == 2) {
    return lanes;
  } else {
    alignas(64) float scales[16];
    for (int i = 0; i < 16; ++i) {
      scales[i] = Format::input_scale(i);
    }
    return mul(lanes, load(scales));
  }
}

template <typename Format>
void store_inputs(const float* values, int count, int stride, float* inputs) {
  for (int i = 0; i < count; ++i) {
    inputs[i * stride] = values[i];
  }
}

// Stores pairs of values that are bf16 or integers in the upper halves of words. Reads
// kPairDistance values behind the last one and ignores them.
template <typename Format>
void store_inputs(const float* values, int count, int stride, std::uint32_t* inputs) {
  constexpr int kDistance = Format::kPairDistance;
  alignas(64) std::uint32_t pairs[kLanes];
  for (int i = 0; i < count; i += kLanes) {
    const U32x16 first = shift_right<16>(as_u32(load(values + i)));
    store_u32(pairs, bit_or(first, as_u32(load(values + i + kDistance))));
    // The other lanes pair values that do not belong together.
    for (int lane = 0; lane < kLanes && i + lane < count; lane += 2 * kDistance) {
      std::uint32_t* to = inputs + (i + lane) / 2 * stride;
      if (stride == 1) {
        __builtin_memcpy(to, pairs + lane, sizeof(*pairs) * kDistance);
        continue;
      }
      for (int j = 0; j < kDistance; ++j) {
        to[j * stride] = pairs[lane + j];
      }
    }
  }
}

// Converts `count` values, padded to a multiple of 16, to operands. With groups also writes the
// group's numbers as MicroPanel has them, `stride` apart.
template <typename Format>
[[gnu::always_inline]] inline void convert_inputs(
    const float* from, int count, float* values, float* numbers, int
) {
  F32x16 sum = zero();
  for (int i = 0; i < count; i += 16) {
    const F32x16 lanes = Format::Operand::round(load(from + i));
    sum = add(sum, lanes);
    store(values + i, input_lanes<Format>(lanes));
  }
  if constexpr (kGrouped<Format>) {
    *numbers = reduce_add(sum);
  }
}

#if defined(SAKER_INT16_DOT)
// As above for integers, in the upper halves of `values`. The step is NaN if a value is not finite.
template <typename Format>
  requires(Format::Operand::kSteps)
[[gnu::always_inline]] inline void convert_inputs(
    const float* from, int count, float* values, float* numbers, int stride
) {
  Largest largest;
  for (int i = 0; i < count; i += 16) {
    largest.add(load(from + i));
  }
  const Int16Step of(largest.top());
  F32x16 sum = zero();
  for (int i = 0; i < count; i += 16) {
    const U32x16 integers = to_int(mul(load(from + i), broadcast(of.inverse)));
    sum = add(sum, to_float(integers));
    store(values + i, as_float(shift_left<16>(integers)));
  }
  const float step = of.step + largest.flaw();
  numbers[0] = step * reduce_add(sum);
  numbers[stride] = step;
}
#endif

template <typename Format>
void prepare(
    const PackedMatrix& weight,
    const InputRows& x,
    const MicroPanels& micro_panels,
    int micro_panel,
    std::byte* prepared
) {
  constexpr int kPerOperand = Format::Operand::kPerOperand;
  const auto to = micro_panel_room<Format>(weight, micro_panels, micro_panel, prepared);
  const int chunk = kGrouped<Format> ? weight.group : 64;
  alignas(64) float values[128 + kLanes];
  for (int row = 0; row < to.rows; ++row) {
    for (int k = 0; k < weight.columns; k += chunk) {
      const int count = smaller(chunk, weight.columns - k);
      const float* from = find_inputs(x, to.first + row, k, count, values);
      const int group = k / chunk;
      float* of =
          kGrouped<Format> ? to.numbers + group * kGroupNumbers<Format> * to.rows + row : nullptr;
      convert_inputs<Format>(from, count, values, of, to.rows);
      store_inputs<Format>(values, count, to.rows, to.inputs + k / kPerOperand * to.rows + row);
    }
  }
}

}  // namespace saker::kernels::SAKER_ISA
