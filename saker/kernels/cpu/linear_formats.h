// SPDX-License-Identifier: Apache-2.0
#pragma once

// How the products of one instruction set read packed weights: a step loads one word per lane and
// gives operands, each of which stands for one k (float32) or for a pair of k (bf16). See
// packed_matrix.h for the words.

#include "saker/kernels/cpu/linear_operands.h"
#include "saker/kernels/cpu/packed_matrix.h"

namespace saker::kernels::SAKER_ISA {

// A word of codes. Where registers are few it stays in memory and each operand reads it: the upper
// halves of all lanes are what lies two bytes further, in their lower halves, so no shift is needed
// (what follows the last word are scales).
#if defined(SAKER_EMULATE_AVX512) || defined(__AVX512F__)
struct CodeWord {
  U32x16 lanes;

  static CodeWord load(const std::byte* p) {
    return {load_u32(reinterpret_cast<const std::uint32_t*>(p))};
  }

  U32x16 whole() const { return lanes; }

  U32x16 upper() const { return shift_right<16>(lanes); }
};
#else
struct CodeWord {
  const std::byte* at;

  static CodeWord load(const std::byte* p) { return {p}; }

  U32x16 whole() const { return load_u32(reinterpret_cast<const std::uint32_t*>(at)); }

  // Defined in the lower 16 bits of each lane.
  U32x16 upper() const { return load_u32(reinterpret_cast<const std::uint32_t*>(at + 2)); }
};
#endif

struct Float32Format {
  using Operand = FloatOperand;
  using Word = F32x16;
  static constexpr int kStepBytes = 64;
  static constexpr int kOperands = 1;  // Of one step.

  static Word load_word(const std::byte* p) { return load(reinterpret_cast<const float*>(p)); }

  template <int index>
  static F32x16 operand(Word word) {
    return word;
  }
};

struct Float16Format {
  using Operand = FloatOperand;
  using Word = F32x16;
  static constexpr int kStepBytes = 32;
  static constexpr int kOperands = 1;

  static Word load_word(const std::byte* p) {
    return load_f16(reinterpret_cast<const std::uint16_t*>(p));
  }

  template <int index>
  static F32x16 operand(Word word) {
    return word;
  }
};

struct BFloat16Format {
  using Operand = Bf16Operand;
  using Word = U32x16;
  static constexpr int kStepBytes = 64;
  static constexpr int kOperands = 2 / Operand::kPerOperand;
  static constexpr int kPairDistance = 1;

  static Word load_word(const std::byte* p) {
    return load_u32(reinterpret_cast<const std::uint32_t*>(p));
  }

  template <int index>
  static auto operand(Word word) {
    if constexpr (Operand::kPerOperand == 2) {
      return word;
    } else if constexpr (index == 0) {
      return even_bf16(word);
    } else {
      return odd_bf16(word);
    }
  }
};

// Codes of a group; operands are code + kOffset. A pair holds columns k and k + kPairDistance,
// since one shift and one mask give both. float32 operands are codes times 2^e for their place in
// the word, and the prepared x of that k is multiplied by 2^-e: exact, and it saves a shift.
struct NibbleFormat {
  using Operand = Bf16Operand;
  using Word = CodeWord;
  static constexpr int kStepBytes = 64;
  static constexpr int kOperands = 8 / Operand::kPerOperand;
  static constexpr int kPairDistance = 4;
  static constexpr float kOffset = Operand::kPerOperand == 2 ? 128.0F : 0.0F;

  static Word load_word(const std::byte* p) { return Word::load(p); }

  static float input_scale(int k) {
    constexpr float kScales[4] = {1.0F, 0x1p-4F, 0x1p-8F, 0x1p-12F};
    return Operand::kPerOperand == 2 ? 1.0F : kScales[k % 4];
  }

  template <int index>
  static auto operand(Word word) {
    if constexpr (Operand::kPerOperand == 2) {
      // bf16 bits 0x4300 are 128, and the last bit of its fraction is 1.
      const U32x16 codes =
          bit_and(shift_right<4 * index>(word.whole()), broadcast_u32(0x000f000fU));
      return bit_or(codes, broadcast_u32(0x43004300U));
    } else {
      const U32x16 half = index < 4 ? word.whole() : word.upper();
      return to_float(bit_and(half, broadcast_u32(0xfU << (index % 4 * 4))));
    }
  }
};

struct ByteFormat {
  using Operand = Bf16Operand;
  using Word = CodeWord;
  static constexpr int kStepBytes = 64;
  static constexpr int kOperands = 4 / Operand::kPerOperand;
  static constexpr int kPairDistance = 2;
  static constexpr float kOffset = 0.0F;

  static Word load_word(const std::byte* p) { return Word::load(p); }

  static float input_scale(int k) {
    return Operand::kPerOperand == 2 || k % 2 == 0 ? 1.0F : 0x1p-8F;
  }

  template <int index>
  static auto operand(Word word) {
    if constexpr (Operand::kPerOperand == 2) {
      return bf16_of_bytes<index>(word.whole());
    } else {
      const U32x16 half = index < 2 ? word.whole() : word.upper();
      return to_float(bit_and(half, broadcast_u32(0xffU << (index % 2 * 8))));
    }
  }
};

inline F32x16 load_scales(ScaleKind kind, const std::byte* p) {
  switch (kind) {
    case ScaleKind::kBFloat16:
      return load_bf16(reinterpret_cast<const std::uint16_t*>(p));
    case ScaleKind::kFloat16:
      return load_f16(reinterpret_cast<const std::uint16_t*>(p));
    default:
      return load(reinterpret_cast<const float*>(p));
  }
}

// Calls function with the format of the weight.
template <typename Function>
[[gnu::always_inline]] inline auto with_format(const PackedMatrix& weight, Function function) {
  switch (weight.kind) {
    case PackedKind::kFloat16:
      return function(Float16Format());
    case PackedKind::kBFloat16:
      return function(BFloat16Format());
    case PackedKind::kNibble:
      return function(NibbleFormat());
    case PackedKind::kByte:
      return function(ByteFormat());
    default:
      return function(Float32Format());
  }
}

}  // namespace saker::kernels::SAKER_ISA
