// SPDX-License-Identifier: Apache-2.0
#pragma once

// Codes of 5 and 6 bits in halves of words (packed_matrix.h), as operands.

#include "saker/kernels/cpu/gemm/code_formats.h"
#include "saker/kernels/cpu/gemm/lines.h"
#include "saker/kernels/layout/planes.h"

namespace saker::kernels::SAKER_ISA {

// Pair kPair of a run: a code in each half of each word.
template <int kBits, int kPair>
[[gnu::always_inline]] inline U32x16 pair_in_halves(const std::byte* run) {
  using Kind = Halves<kBits>;
  U32x16 codes;
  unroll<Kind::pieces(kPair)>([&](auto index) {
    constexpr auto kPiece = Kind::piece(kPair, index.kValue);
    constexpr unsigned kMask = Kind::mask(kPiece.bit, kPiece.bits);
    constexpr int kDown = kPiece.shift - kPiece.bit;
    U32x16 line = load_line(run, kPiece.line);
    if constexpr (kDown > 0) {
      line = shift_right<kDown>(line);
    }
    const U32x16 bits = bit_and(line, broadcast_u32(kMask));
    codes = index.kValue == 0 ? bits : bit_or(codes, bits);
  });
  return codes;
}

// True for formats of codes in halves.
template <typename Format>
inline constexpr bool kIsOfHalves = requires { Format::Kind::kWholePairs; };

// A step is a run. It takes the inputs of ByteFormat.
template <int kBits>
struct HalvesFormat : CodeFormat {
  using Kind = Halves<kBits>;
  using Word = const std::byte*;
  static constexpr Codes kCodes = Codes::kAffine;
  static constexpr int kStepBytes = Kind::kLines * kLaneBytes;
  static constexpr int kOperands = Kind::kColumns / Operand::kPerOperand;
  static constexpr int kPairDistance = 2;
  static constexpr float kOffset = 0.0F;

  static Word load_word(const std::byte* p) { return p; }

  static float input_scale(int) { return 1.0F; }

  template <int index>
  static auto operand(Word run) {
    if constexpr (kIntegers) {
      return pair_in_halves<kBits, index>(run);
    } else if constexpr (Operand::kPerOperand == 2) {
      return bf16_of_bytes<0>(pair_in_halves<kBits, index>(run));
    } else {
      const U32x16 pair = pair_in_halves<kBits, Kind::pair_of(index)>(run);
      return to_float(
          Kind::half_of(index) == 0 ? bit_and(pair, broadcast_u32(0xffffU)) : shift_right<16>(pair)
      );
    }
  }
};

}  // namespace saker::kernels::SAKER_ISA
