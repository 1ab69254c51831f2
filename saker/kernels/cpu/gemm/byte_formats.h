// SPDX-License-Identifier: Apache-2.0
#pragma once

// Words of affine codes as bytes, for few rows of x.

#include "saker/kernels/cpu/gemm/code_formats.h"

namespace saker::kernels::SAKER_ISA {

// The format used for few rows of x: affine codes stay bytes if the set multiplies bytes.
template <typename Format>
struct FewRows {
  using Type = Format;
};

// True if a format multiplies bytes.
template <typename Format>
inline constexpr bool kIsOfBytes = Format::Operand::kPerOperand == 4;

#if defined(SAKER_BYTE_DOT)
struct NibbleBytesFormat : CodeFormat {
  using Operand = ByteOperand;
  static constexpr Codes kCodes = Codes::kAffine;
  static constexpr int kOperands = 2;
  static constexpr float kOffset = 0.0F;

  // The column, of eight, of byte i of operands.
  static constexpr int column(int i) { return i % 4 * 2 + i / 4; }

  template <int index>
  static U32x16 operand(Word word) {
    return bit_and(shift_right<4 * index>(word.whole()), broadcast_u32(0x0f0f0f0fU));
  }
};

struct ByteBytesFormat : CodeFormat {
  using Operand = ByteOperand;
  static constexpr Codes kCodes = Codes::kAffine;
  static constexpr int kOperands = 1;
  static constexpr float kOffset = 0.0F;

  static constexpr int column(int i) { return i; }

  template <int index>
  static U32x16 operand(Word word) {
    return word.whole();
  }
};

template <>
struct FewRows<NibbleFormat> {
  using Type = NibbleBytesFormat;
};

template <>
struct FewRows<ByteFormat> {
  using Type = ByteBytesFormat;
};
#endif

}  // namespace saker::kernels::SAKER_ISA
