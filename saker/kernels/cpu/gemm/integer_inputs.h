// SPDX-License-Identifier: Apache-2.0
#pragma once

// Prepares rows of x as integer operands, sixteen groups at a time, with the bits of `prepare` in
// cpu/gemm/prepare.h, which it replaces. AVX-512.

#include "saker/kernels/cpu/gemm/byte_formats.h"
#include "saker/kernels/cpu/gemm/group_steps.h"
#include "saker/kernels/cpu/gemm/interleave.h"
#include "saker/kernels/cpu/gemm/prepare.h"

#include <type_traits>

namespace saker::kernels::SAKER_ISA {

// Inputs of sixteen columns.
template <typename Format>
inline constexpr int kLaneInputs = kLanes / Format::Operand::kPerOperand;

// The source of each byte of the inputs of eight columns, among the columns' int16.
struct ByteSources {
  std::uint8_t at[16];
};

template <typename Format>
constexpr ByteSources byte_sources() {
  ByteSources from = {};
  for (int i = 0; i < 16; ++i) {
    if constexpr (kIsOfBytes<Format>) {
      // Upper bytes of four columns, their lower bytes, then the other four columns.
      const int column = Format::column(i / 8 * 4 + i % 4);
      from.at[i] = static_cast<std::uint8_t>(2 * column + (i % 8 < 4 ? 1 : 0));
    } else {
      // Pairs of columns.
      constexpr int kDistance = Format::kPairDistance;
      const int pair = i / 4;
      const int column = pair / kDistance * 2 * kDistance + pair % kDistance;
      from.at[i] = static_cast<std::uint8_t>(2 * (column + i % 4 / 2 * kDistance) + i % 2);
    }
  }
  return from;
}

// Stores sixteen int16, in the lower halves of lanes, as adjacent inputs.
template <typename Format>
[[gnu::always_inline]] inline void store_lane_inputs(
    U32x16 integers, typename Format::Operand::Input* inputs
) {
  alignas(16) static constexpr ByteSources kFrom = byte_sources<Format>();
  __m256i words;
  if constexpr (kIsOfBytes<Format>) {
    // Adding 128 rounds the upper byte and flips the sign of the lower one.
    const U32x16 rounded = add_u32(integers, broadcast_u32(0x80U));
    words = _mm256_xor_si256(_mm512_cvtepi32_epi16(rounded.v), _mm256_set1_epi16(0x80));
  } else {
    words = _mm512_cvtepi32_epi16(integers.v);
  }
  const __m128i from = _mm_load_si128(reinterpret_cast<const __m128i*>(kFrom.at));
  words = _mm256_shuffle_epi8(words, _mm256_broadcastsi128_si256(from));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(inputs), words);
}

// For Winograd's products: minus the sum of each group's products of two columns.
struct OwnProducts {
  U32x16 sums[kGroupsAtOnce] = {};

  [[gnu::always_inline]] void add(int group, U32x16 integers) {
    const __m512i odd = _mm512_srli_epi64(integers.v, 32);
    sums[group].v = _mm512_add_epi64(sums[group].v, _mm512_mul_epi32(integers.v, odd));
  }

  // Groups are `next` apart. Overwrites the sums.
  void store_minus(int groups, int next, float* numbers) {
    for (U32x16& sum : sums) {
      sum.v = _mm512_maskz_mov_epi32(0x5555, sum.v);  // Drops the upper halves of the products.
    }
    alignas(64) float values[kGroupsAtOnce];
    store(values, as_float(sub_u32(broadcast_u32(0), sums_of_lines(sums))));
    for (int g = 0; g < groups; ++g) {
      numbers[g * next] = values[g];
    }
  }
};

struct NoProducts {
  [[gnu::always_inline]] void add(int, U32x16) {}

  void store_minus(int, int, float*) {}
};

// Prepares some groups of a row, kGroupsAtOnce at most. Its inputs are adjacent; the numbers of
// `rows` rows are interleaved.
template <typename Format, int kGroup>
void prepare_groups(
    const float* from, int groups, int rows, typename Format::Operand::Input* inputs, float* numbers
) {
  const Int16Steps steps = group_steps<kGroup>(from, groups);
  alignas(64) float inverses[kGroupsAtOnce];
  store(inverses, steps.inverse);
  U32x16 sums[kGroupsAtOnce] = {};
  std::conditional_t<kIsWinograd<Format>, OwnProducts, NoProducts> products;
  for (int g = 0; g < groups; ++g) {
#pragma GCC unroll 8
    for (int i = 0; i < kGroup; i += kLanes) {
      const U32x16 integers = to_int(mul(load(from), broadcast(inverses[g])));
      sums[g] = add_u32(sums[g], integers);
      products.add(g, integers);
      from += kLanes;
      store_lane_inputs<Format>(integers, inputs);
      inputs += kLaneInputs<Format>;
    }
  }
  const int next = kGroupNumbers<Format> * rows;
  store_numbers(steps, sums, groups, rows, next, numbers);
  products.store_minus(groups, next, numbers + 2 * rows);
}

// Prefetches columns [k, k + count) of a row into L2: a short row ends before the hardware
// prefetcher detects it.
inline void prefetch_inputs(const InputRows& x, int row, int k, int count) {
  const float* from = x.data + row * x.row_stride + k;
  for (int i = 0; i < count; i += kLanes) {
    __builtin_prefetch(from + i, 0, 2);
  }
}

template <typename Format>
  requires(Format::Operand::kSteps)
void prepare(
    const PackedMatrix& weight,
    const InputRows& x,
    const MicroPanels& micro_panels,
    int micro_panel,
    std::byte* prepared
) {
  using Input = typename Format::Operand::Input;
  const auto to = micro_panel_room<Format>(weight, micro_panels, micro_panel, prepared);
  alignas(64) float values[kGroupsAtOnce * kLargestGroup];
  alignas(64) Input inputs[kFewRows][kMaxInputs];
  with_group<16>(weight, [&]<int kGroup>() {
    constexpr int kColumns = kGroupsAtOnce * kGroup;
    for (int k = 0; k < weight.columns; k += kColumns) {
      const int columns = smaller(kColumns, weight.columns - k);
      Input* at = to.inputs + k / Format::Operand::kPerOperand * to.rows;
      for (int row = 0; row < to.rows; ++row) {
        prefetch_inputs(x, to.first + row + 1, k, columns);
        prepare_groups<Format, kGroup>(
            find_inputs(x, to.first + row, k, columns, values),
            columns / kGroup,
            to.rows,
            to.rows == 1 ? at : inputs[row],
            to.numbers + k / kGroup * kGroupNumbers<Format> * to.rows + row
        );
      }
      if (to.rows > 1) {
        interleave(inputs, to.rows, columns / Format::Operand::kPerOperand, at);
      }
    }
  });
}

}  // namespace saker::kernels::SAKER_ISA
