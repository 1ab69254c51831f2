// SPDX-License-Identifier: Apache-2.0
#pragma once

// Shared parts of one instruction set's products: blocks in flight, the end of a sum.

#include "saker/kernels/cpu/gemm/group_places.h"
#include "saker/kernels/cpu/gemm/micro_panels.h"
#include "saker/kernels/cpu/simd/prefetch.h"

namespace saker::kernels::SAKER_ISA {

template <typename Format>
constexpr bool kGrouped = Format::kCodes != Codes::kNone;

// Blocks in flight: a power of two, so that tiles hold whole multiples. Several blocks of codes are
// read side by side only where each has enough chains by its rows, because memory is read fastest
// in order.
template <typename Format>
constexpr int blocks_for(int rows) {
  constexpr int kMax = kIsWinograd<Format> ? 2 : kRowBlocks;
  const int most = kGrouped<Format> && kCodesInOrder ? smaller(rows, kMax) : kMax;
  // With 32 columns in a step sums would leave the registers.
  constexpr bool kLongSteps = kCodesInOrder && Format::kOperands > 8;
  constexpr int kFewest = kLongSteps ? kFewGroupSums / 2 : kFewGroupSums;
  constexpr int kSums = kGrouped<Format> ? kFewest / Format::Operand::kSums : kFewSums;
  int blocks = kRowBlocks;
  while (blocks > most || (blocks > 1 && blocks * rows > kSums)) {
    blocks /= 2;
  }
  return blocks;
}

// For one group of 16 outputs: `scale`, and `factor`, which multiplies sum(x): bias - scale * code
// offset.
struct GroupScaleBias {
  F32x16 scale;
  F32x16 factor;
};

template <typename Format>
[[gnu::always_inline]] inline GroupScaleBias load_terms(
    const PackedMatrix& weight, const std::byte* scales
) {
  const F32x16 scale = load_scales(weight.scale_kind, scales);
  if constexpr (Format::kCodes == Codes::kSmallFloats) {
    return {mul(scale, broadcast(Format::kUnit)), zero()};
  } else if (weight.terms == TermKind::kScale) {
    const float factor = -(static_cast<float>(weight.zero) + Format::kOffset);
    return {scale, mul(scale, broadcast(factor))};
  } else {
    const std::byte* biases = scales + kBlockRows * scale_bytes(weight.scale_kind);
    const F32x16 bias = load_scales(weight.scale_kind, biases);
    return {scale, Format::kOffset == 0.0F ? bias : fma(broadcast(-Format::kOffset), scale, bias)};
  }
}

// Adds one group to y. `a` is its chain of products; `numbers` are those of kRows rows, `row` is
// one of these.
template <typename Format, int kRows>
[[gnu::always_inline]] inline F32x16 add_group(
    F32x16 y,
    typename Format::Operand::Sum a,
    const float* numbers,
    int row,
    const GroupScaleBias& terms
) {
  F32x16 scaled;
  if constexpr (Format::Operand::kSteps) {
    scaled = fma(
        terms.scale, mul(to_float(Format::Operand::whole(a)), broadcast(numbers[kRows + row])), y
    );
  } else {
    scaled = fma(terms.scale, a, y);
  }
  if constexpr (Format::kCodes == Codes::kSmallFloats) {
    return scaled;
  } else {
    return fma(terms.factor, broadcast(numbers[row]), scaled);
  }
}

// Adds one step to the chains: word[b] of each block times the inputs of each row. Goes operand by
// operand, so that consecutive instructions belong to different chains.
template <typename Format, int kCount, int kRows, int kBlocks>
[[gnu::always_inline]] inline void add_step(
    const typename Format::Word (&word)[kBlocks],
    const typename Format::Operand::Input* inputs,
    typename Format::Operand::Sum (&sums)[kRows][kBlocks]
) {
  using Operand = typename Format::Operand;
  unroll<kCount>([&](auto i) {
    unroll<kBlocks>([&](auto b) {
      const auto operand = Format::template operand<i.kValue>(word[b.kValue]);
      unroll<kRows>([&](auto r) {
        sums[r.kValue][b.kValue] =
            Operand::step(sums[r.kValue][b.kValue], operand, inputs[i.kValue * kRows + r.kValue]);
      });
    });
  });
}

// A word for one row of x.
template <typename Format>
[[gnu::always_inline]] inline auto load_one_word(const std::byte* p) {
  if constexpr (requires { Format::hold_word(p); }) {
    return Format::hold_word(p);
  } else {
    return Format::load_word(p);
  }
}

// As add_step for one row and one block, but of several groups, whose inputs are `stride` apart.
template <typename Format, typename Word, int kGroups>
[[gnu::always_inline]] inline void add_steps(
    const Word (&word)[kGroups],
    const typename Format::Operand::Input* inputs,
    int stride,
    typename Format::Operand::Sum (&sums)[kGroups]
) {
  using Operand = typename Format::Operand;
  unroll<Format::kOperands>([&](auto i) {
    unroll<kGroups>([&](auto g) {
      const auto operand = Format::template operand<i.kValue>(word[g.kValue]);
      const auto input = inputs[g.kValue * stride + i.kValue];
      sums[g.kValue] = Operand::step(sums[g.kValue], operand, input);
    });
  });
}

// Bytes of memory to prefetch for a group's terms; those of a super-block lie together.
[[gnu::always_inline]] inline std::size_t term_line_bytes(const PackedMatrix& weight) {
  return weight.in_super_blocks() ? kLineBytes : weight.term_bytes();
}

// The distance of lines to prefetch, see Prefetcher: all lines that a group asks for are its bytes.
template <typename Format>
[[gnu::always_inline]] inline std::size_t prefetch_step(const PackedMatrix& weight) {
  constexpr std::size_t kStepLines = (Format::kStepBytes + kLineBytes - 1) / kLineBytes;
  const std::size_t steps = weight.group / Format::Operand::kPerOperand / Format::kOperands;
  const std::size_t asked = steps * kStepLines * kLineBytes + term_line_bytes(weight);
  return kLineBytes * weight.group_bytes() / asked;
}

// Writes sixteen results of a row, fewer at the right edge.
inline void store_result(
    const PackedMatrix& weight, const LinearTile& tile, int row, int block, F32x16 y
) {
  const int column = block * kBlockRows;
  const int count = smaller(kBlockRows, weight.rows - column);
  float* out = tile.out + static_cast<std::size_t>(row) * weight.rows + column;
  if (count == kBlockRows) {
    store(out, tile.bias == nullptr ? y : add(y, load(tile.bias + column)));
  } else {
    store_part(out, tile.bias == nullptr ? y : add(y, load_part(tile.bias + column, count)), count);
  }
}

}  // namespace saker::kernels::SAKER_ISA
