// SPDX-License-Identifier: Apache-2.0
#pragma once

// How the products of one instruction set read words of codes, see cpu/gemm/formats.h.

#include "saker/kernels/cpu/gemm/e4m3.h"
#include "saker/kernels/cpu/gemm/operands.h"

namespace saker::kernels::SAKER_ISA {

// The words of a format: values, codes in groups with scales and biases, or small floats in groups
// with scales.
enum class Codes { kNone, kAffine, kSmallFloats };

// A word of codes. With few registers it stays in memory and each operand reads it. A load two
// bytes further gives the upper halves of all lanes in lower halves, without a shift. (Scales
// follow the last word.)
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

// Base of all code formats: one word per lane and step.
struct CodeFormat {
  using Operand = CodeOperand;
  using Word = CodeWord;
  static constexpr int kStepBytes = 64;
  static constexpr bool kIntegers = Operand::kSteps;

  static Word load_word(const std::byte* p) { return Word::load(p); }
};

// Affine codes; operands are code + kOffset. A pair holds columns k and k + kPairDistance, since
// one shift and one mask give both. Operands in float32 are codes times 2^e for their place in the
// word, and the prepared x of that k is multiplied by 2^-e. That is exact and saves a shift.
struct NibbleFormat : CodeFormat {
  static constexpr Codes kCodes = Codes::kAffine;
  static constexpr int kOperands = 8 / Operand::kPerOperand;
  static constexpr int kPairDistance = 4;
  static constexpr float kOffset = Operand::kPerOperand == 2 && !kIntegers ? 128.0F : 0.0F;

  static float input_scale(int k) {
    constexpr float kScales[4] = {1.0F, 0x1p-4F, 0x1p-8F, 0x1p-12F};
    return Operand::kPerOperand == 2 ? 1.0F : kScales[k % 4];
  }

  // Pairs of codes and 128: bf16 bits 0x4300 are 128, and the last bit of its fraction is 1.
  static U32x16 bf16_of_codes(U32x16 codes) { return bit_or(codes, broadcast_u32(0x43004300U)); }

  template <int index>
  static auto operand(Word word) {
    if constexpr (Operand::kPerOperand == 2) {
      const U32x16 codes =
          bit_and(shift_right<4 * index>(word.whole()), broadcast_u32(0x000f000fU));
      return kIntegers ? codes : bf16_of_codes(codes);
    } else {
      const U32x16 half = index < 4 ? word.whole() : word.upper();
      return to_float(bit_and(half, broadcast_u32(0xfU << (index % 4 * 4))));
    }
  }
};

struct ByteFormat : CodeFormat {
  static constexpr Codes kCodes = Codes::kAffine;
  static constexpr int kOperands = 4 / Operand::kPerOperand;
  static constexpr int kPairDistance = 2;
  static constexpr float kOffset = 0.0F;

  static float input_scale(int k) {
    return Operand::kPerOperand == 2 || k % 2 == 0 ? 1.0F : 0x1p-8F;
  }

  template <int index>
  static auto operand(Word word) {
    if constexpr (kIntegers) {
      return bit_and(shift_right<8 * index>(word.whole()), broadcast_u32(0x00ff00ffU));
    } else if constexpr (Operand::kPerOperand == 2) {
      return bf16_of_bytes<index>(word.whole());
    } else {
      const U32x16 half = index < 2 ? word.whole() : word.upper();
      return to_float(bit_and(half, broadcast_u32(0xffU << (index % 2 * 8))));
    }
  }
};

// Codes of E2M1, looked up in a table. Twice a value is a whole number.
struct E2m1Format : CodeFormat {
  static constexpr Codes kCodes = Codes::kSmallFloats;
  static constexpr float kUnit = kIntegers ? 0.5F : 1.0F;  // The value of operand 1.
  static constexpr int kOperands = 8 / Operand::kPerOperand;
  static constexpr int kPairDistance = 4;
  static constexpr float kValues[16] = {
      0.0F,
      0.5F,
      1.0F,
      1.5F,
      2.0F,
      3.0F,
      4.0F,
      6.0F,
      -0.0F,
      -0.5F,
      -1.0F,
      -1.5F,
      -2.0F,
      -3.0F,
      -4.0F,
      -6.0F
  };

  struct Integers {
    std::int8_t values[16];
  };

  static constexpr Integers kIntegerValues = [] {
    Integers table = {};
    for (int i = 0; i < 16; ++i) {
      table.values[i] = static_cast<std::int8_t>(2 * kValues[i]);
    }
    return table;
  }();

  struct Bf16Values {
    std::uint16_t values[16];
  };

  static constexpr Bf16Values kBf16 = [] {
    Bf16Values table = {};
    for (int i = 0; i < 16; ++i) {
      table.values[i] =
          static_cast<std::uint16_t>(__builtin_bit_cast(std::uint32_t, kValues[i]) >> 16);
    }
    return table;
  }();

  static float input_scale(int) { return 1.0F; }

  template <int index>
  static auto operand(Word word) {
    if constexpr (kIntegers) {
      return look_up_integers<index>(kIntegerValues.values, word.whole());
    } else if constexpr (Operand::kPerOperand == 2) {
      return look_up_pairs(kBf16.values, shift_right<4 * index>(word.whole()));
    } else {
      return look_up(kValues, shift_right<4 * index>(word.whole()));
    }
  }
};

// Codes of E4M3; their values are exact in bf16.
struct E4m3Format : CodeFormat {
  using Operand = Bf16Operand;
  static constexpr Codes kCodes = Codes::kSmallFloats;
  static constexpr float kUnit = 1.0F;
  static constexpr int kOperands = 4 / Operand::kPerOperand;
  static constexpr int kPairDistance = 2;

  static float input_scale(int) { return 1.0F; }

  template <int index>
  static F32x16 column(U32x16 word) {
    return e4m3_values(shift_left<24 - 8 * index>(word));
  }

  template <int index>
  static auto operand(Word word) {
    const U32x16 whole = word.whole();
    if constexpr (Operand::kPerOperand == 2) {
      const U32x16 first = shift_right<16>(as_u32(column<index>(whole)));
      return bit_or(first, as_u32(column<index + kPairDistance>(whole)));
    } else {
      return column<index>(whole);
    }
  }
};

}  // namespace saker::kernels::SAKER_ISA
