// SPDX-License-Identifier: Apache-2.0
#pragma once

// One row of x times an NR block of codes in super-blocks. A super-block is unrolled, so that its terms
// stay in registers from their bits to their use. Bits are those of groups.h. AVX-512.

#include "saker/kernels/cpu/gemm/tiles.h"

#include <type_traits>

namespace saker::kernels::SAKER_ISA {

// The terms of super-blocks whose codes are of this format. Void: there are none.
template <typename Format>
struct TermsOf {
  static constexpr bool kNibbles =
      Format::kCodes == Codes::kAffine && Format::kOperands * Format::Operand::kPerOperand == 8;
  using Type = std::conditional_t<kNibbles, PairTerms, void>;
};

template <typename Format>
  requires kIsNarrow<Format>
struct TermsOf<Format> : TermsOf<typename Format::Kind> {};

template <>
struct TermsOf<TableNames> {
  using Type = SplitTerms;
};

template <>
struct TermsOf<Halves<2>> {
  using Type = NibbleTerms;
};

template <>
struct TermsOf<Halves<3>> {
  using Type = SixBitTerms;
};

template <>
struct TermsOf<Halves<5>> {
  using Type = PairTerms;
};

template <>
struct TermsOf<Halves<6>> {
  using Type = ByteTerms;
};

// True for formats whose single rows these products multiply. With fewer registers terms lie in memory.
template <typename Format>
inline constexpr bool kHasSuperRows =
    kCodesInOrder && !std::is_void_v<typename TermsOf<Format>::Type>;

// Groups in flight: a single chain would leave the multipliers waiting.
inline constexpr int kSuperGroupsAtOnce = 2;

// Adds group kFirst and the next ones to y. `words`, `inputs` and `numbers` are the super-block's.
template <typename Format, int kFirst, typename Terms>
[[gnu::always_inline]] inline F32x16 add_super_groups(
    const std::byte* words,
    const SuperTerms<Terms>& terms,
    const typename Format::Operand::Input* inputs,
    const float* numbers,
    Prefetcher& ahead,
    F32x16 y
) {
  constexpr int kStepInputs = Format::kOperands;
  constexpr int kSteps =
      kSuperColumns / Terms::kGroups / (kStepInputs * Format::Operand::kPerOperand);
  typename Format::Operand::Sum sums[kSuperGroupsAtOnce];
  unroll<kSuperGroupsAtOnce>([&](auto g) { clear(sums[g.kValue]); });
  unroll<kSteps>([&](auto step) {
    decltype(load_one_word<Format>(words)) words_of[kSuperGroupsAtOnce];
    unroll<kSuperGroupsAtOnce>([&](auto g) {
      constexpr int kStep = (kFirst + g.kValue) * kSteps + step.kValue;
      words_of[g.kValue] = load_one_word<Format>(words + kStep * Format::kStepBytes);
      ahead.ask(Format::kStepBytes);
    });
    constexpr int kInput = (kFirst * kSteps + step.kValue) * kStepInputs;
    add_steps<Format>(words_of, inputs + kInput, kSteps * kStepInputs, sums);
  });
  ahead.ask(kSuperGroupsAtOnce * kLineBytes);
  unroll<kSuperGroupsAtOnce>([&](auto g) {
    constexpr int kGroup = kFirst + g.kValue;
    const SuperTerm term = terms.template of_group<kGroup>();
    const float* of_group = numbers + kGroup * kGroupNumbers<Format>;
    y = add_group<Format, 1>(y, sums[g.kValue], of_group, 0, {term.scale, term.bias});
  });
  return y;
}

template <typename Format>
void multiply_super_row(const PackedMatrix& weight, const LinearTile& tile, int block) {
  using Terms = typename TermsOf<Format>::Type;
  static_assert(Format::kOffset == 0.0F);
  constexpr int kInputs = kSuperColumns / Format::Operand::kPerOperand;
  constexpr int kNumbers = Terms::kGroups * kGroupNumbers<Format>;
  const auto x = micro_panel_at<Format>(weight, tile, 0);
  const std::size_t super_bytes = weight.super_bytes();
  const std::size_t term_offset = super_bytes - weight.super_term_bytes();
  const std::byte* super = weight.block(block);
  Prefetcher ahead = {super + kPrefetchDistance, prefetch_step<Format>(weight)};
  F32x16 y = zero();
  for (int k = 0; k < weight.columns; k += kSuperColumns) {
    const SuperTerms<Terms> terms(super + term_offset);
    const auto* inputs = x.inputs + k / kSuperColumns * kInputs;
    const float* numbers = x.numbers + k / kSuperColumns * kNumbers;
    unroll<Terms::kGroups / kSuperGroupsAtOnce>([&](auto pair) {
      constexpr int kFirst = pair.kValue * kSuperGroupsAtOnce;
      y = add_super_groups<Format, kFirst>(super, terms, inputs, numbers, ahead, y);
    });
    super += super_bytes;
  }
  store_result(weight, tile, 0, block, y);
}

}  // namespace saker::kernels::SAKER_ISA
