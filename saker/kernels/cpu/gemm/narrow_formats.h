// SPDX-License-Identifier: Apache-2.0
#pragma once

// Narrow codes (narrow_codes.h) as operands: those in halves of words, and names of codes of 8 bits. A
// step is a run, or a line of names. Inputs are those of nibbles or bytes.

#include "saker/kernels/cpu/gemm/byte_formats.h"
#include "saker/kernels/cpu/gemm/lines.h"
#include "saker/kernels/layout/narrow_codes.h"

namespace saker::kernels::SAKER_ISA {

// Line kLine of a run.
template <typename Kind, int kLine>
[[gnu::always_inline]] inline U32x16 line_in_halves(const std::byte* run) {
  if constexpr (Kind::kHalfLine && kLine == Kind::kLines - 1) {
    return load_folded(reinterpret_cast<const std::uint32_t*>(run + kLine * kLaneBytes));
  } else {
    return load_line(run, kLine);
  }
}

// The lines of a run in registers.
template <typename Kind>
struct HeldRun {
  U32x16 lines[Kind::kLines];
};

template <typename Kind, int kLine>
[[gnu::always_inline]] inline U32x16 line_in_halves(const HeldRun<Kind>& run) {
  return run.lines[kLine];
}

// Pair kPair of a run, its pieces from kFirst on: a code in each half of each word, from bit kTo of the
// half on.
template <int kBits, int kPair, int kTo = 0, int kFirst = 0, typename Run>
[[gnu::always_inline]] inline U32x16 pair_in_halves(const Run& run) {
  using Kind = Halves<kBits>;
  constexpr auto kPiece = Kind::piece(kPair, kFirst);
  constexpr unsigned kMask = Kind::mask(kPiece.bit + kTo, kPiece.bits);
  const U32x16 line =
      shifted<kPiece.bit + kTo - kPiece.shift>(line_in_halves<Kind, kPiece.line>(run));
  const U32x16 bits = bit_and(line, broadcast_u32(kMask));
  if constexpr (kFirst + 1 == Kind::pieces(kPair)) {
    return bits;
  } else {
    return bit_or(bits, pair_in_halves<kBits, kPair, kTo, kFirst + 1>(run));
  }
}

// True for formats of narrow codes.
template <typename Format>
inline constexpr bool kIsNarrow = requires { typename Format::Kind; };

// It takes the inputs of NibbleFormat or ByteFormat, but floats as they are.
template <int kBits>
struct HalvesFormat : CodeFormat {
  using Kind = Halves<kBits>;
  using Word = const std::byte*;
  static constexpr Codes kCodes = Codes::kAffine;
  static constexpr int kStepBytes = Kind::kRunBytes;
  static constexpr int kOperands = Kind::kColumns / Operand::kPerOperand;
  static constexpr int kPairDistance = Kind::kDistance;
  static constexpr float kOffset = Kind::kField == 4 ? NibbleFormat::kOffset : 0.0F;

  static Word load_word(const std::byte* p) { return p; }

  static float input_scale(int) { return 1.0F; }

#if defined(SAKER_EMULATE_AVX512) || defined(__AVX512F__)
  // A word for one row of x. Codes of 2 and 6 bits are faster where they lie.
  [[gnu::always_inline]] static HeldRun<Kind> hold_word(const std::byte* p)
    requires(kBits % 2 == 1)
  {
    HeldRun<Kind> run;
    unroll<Kind::kLines>([&](auto line) {
      run.lines[line.kValue] = keep(line_in_halves<Kind, line.kValue>(p));
    });
    return run;
  }
#endif

  template <int index, typename Run>
  static auto operand(const Run& run) {
    if constexpr (kIntegers) {
      return pair_in_halves<kBits, index>(run);
    } else if constexpr (Operand::kPerOperand == 2 && Kind::kField == 4) {
      return NibbleFormat::bf16_of_codes(pair_in_halves<kBits, index>(run));
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

// The bytes that the lower (0) or the upper (1) nibbles of a line name.
template <int kIndex>
[[gnu::always_inline]] inline U32x16 look_up_names(U32x16 names) {
  const U32x16 mask = broadcast_u32(TableNames::kMask);
  return look_up_bytes(kTableCodes, bit_and(shifted<-4 * kIndex>(names), mask));
}

struct NamesFormat : CodeFormat {
  using Kind = TableNames;

  // Looked up once: without a byte shuffle that takes long.
  struct Word {
    U32x16 bytes[Kind::kWideLines];
  };

  static constexpr Codes kCodes = Codes::kAffine;
  static constexpr int kColumns = Kind::kColumns / Kind::kWideLines;
  static constexpr int kLineOperands = kColumns / Operand::kPerOperand;
  static constexpr int kOperands = Kind::kWideLines * kLineOperands;
  static constexpr int kPairDistance = ByteFormat::kPairDistance;
  static constexpr float kOffset = 0.0F;

  static float input_scale(int) { return 1.0F; }

  [[gnu::always_inline]] static Word load_word(const std::byte* p) {
    const U32x16 names = load_line(p, 0);
    return {{look_up_names<0>(names), look_up_names<1>(names)}};
  }

  template <int index>
  static auto operand(const Word& word) {
    const U32x16 bytes = word.bytes[index / kLineOperands];
    constexpr int kByte = index % kLineOperands;
    if constexpr (kIntegers) {
      return bit_and(shifted<-8 * kByte>(bytes), broadcast_u32(0x00ff00ffU));
    } else if constexpr (Operand::kPerOperand == 2) {
      return bf16_of_bytes<kByte>(bytes);
    } else {
      return to_float(bit_and(shifted<-8 * kByte>(bytes), broadcast_u32(0xffU)));
    }
  }
};

#if defined(SAKER_BYTE_DOT)
struct TwoBitBytesFormat : NibbleBytesFormat {
  using Kind = Halves<2>;
  static constexpr int kOperands = Kind::kColumns / Operand::kPerOperand;

  template <int index>
  static U32x16 operand(Word word) {
    return bit_and(shifted<-2 * index>(word.whole()), broadcast_u32(0x03030303U));
  }
};

struct NamesBytesFormat : ByteBytesFormat {
  using Kind = TableNames;
  static constexpr int kOperands = Kind::kWideLines;

  template <int index>
  static U32x16 operand(Word word) {
    return look_up_names<index>(word.whole());
  }
};

template <>
struct FewRows<HalvesFormat<2>> {
  using Type = TwoBitBytesFormat;
};

template <>
struct FewRows<NamesFormat> {
  using Type = NamesBytesFormat;
};
#endif

}  // namespace saker::kernels::SAKER_ISA
