// SPDX-License-Identifier: Apache-2.0
#pragma once

// The place of each bit of codes that have fewer bits than their fields, for all code that reads or
// writes them. A line is 16 words, one of each row of a block (packed_matrix.h).
//
// Nibbles whose codes have 2 or 3 bits lie in planes: per 32 columns, four lines of 16 words become
// `code_bits` lines. The lower two bits of the fields come first: line i holds those of line 2 i
// and, shifted left by 2, those of line 2 i + 1. Then come the bits above, those of four lines in
// one: those of line i are shifted left by i.
// Bytes whose codes have 5 or 6 bits lie in halves: per 32 columns five lines, per 16 columns three.
// Columns 4 i and 4 i + 2 are a pair, as are 4 i + 1 and 4 i + 3: its codes lie at the same bits of
// the lower and the upper half of a word. A half holds three codes of 5 bits, or two of 6, from its
// lowest bit on, of consecutive pairs. Its upper bits belong to the last pairs. With 5 bits: bit 15
// of line i is the last pair's bit i. With 6: bits 12 to 15 of line 0 and of line 1 are the lower
// bits of pairs 6 and 7, bits 12 to 15 of line 2 the upper ones.
// Bytes of 4 bits are names in kTableCodes: two lines become one. The low nibbles of its bytes are
// those of line 2 i, the high ones those of line 2 i + 1.

namespace saker::kernels {

inline constexpr int kRunColumns = 32;  // Columns of a run of lines, at most.

// Nibbles whose codes have `code` bits, 2 or 3. A run has kWideLines lines as products read them
// and kLines lines in memory.
template <int code>
struct Planes {
  static_assert(code == 2 || code == 3);
  static constexpr int kField = 4;
  static constexpr int kColumns = kRunColumns;
  static constexpr int kWideLines = kField;
  static constexpr int kLines = code;
  static constexpr int kLow = 2;  // Bits of the lower plane, and its lines.
  static constexpr int kHigh = code - kLow;
  static constexpr int kPerHighLine = kHigh == 0 ? 1 : kField / kHigh;  // Run lines per upper line.

  static constexpr int low_line(int line) { return line / 2; }

  static constexpr int low_shift(int line) { return line % 2 * kLow; }

  static constexpr int high_line(int line) { return kLow + line / kPerHighLine; }

  static constexpr int high_shift(int line) { return line % kPerHighLine * kHigh; }

  // Bits [first, first + count) of all fields of a word.
  static constexpr unsigned mask(int first, int count) {
    unsigned word = 0;
    for (int at = 0; at < 32; at += kField) {
      word |= ((1U << count) - 1U) << (at + first);
    }
    return word;
  }
};

// Bytes whose codes have `code` bits, 5 or 6, in halves of words. Pair p of a run is the columns
// first_column(p) and the second one after it, in the lower and the upper half of a word.
template <int code>
struct Halves {
  static_assert(code == 5 || code == 6);
  static constexpr int kField = 8;
  static constexpr int kColumns = code == 5 ? kRunColumns : kRunColumns / 2;
  static constexpr int kWideLines = kColumns / 4;
  static constexpr int kLines = kColumns * code / 32;
  static constexpr int kPairs = kColumns / 2;
  static constexpr int kWhole = 16 / code;  // Codes of a half that lie in one piece.
  static constexpr int kWholePairs = kLines * kWhole;

  static constexpr int first_column(int pair) { return pair / 2 * 4 + pair % 2; }

  static constexpr int pair_of(int column) { return column / 4 * 2 + column % 2; }

  static constexpr int half_of(int column) { return column % 4 / 2; }

  // Bits [bit, bit + bits) of a code lie in this line, from this bit of the half on.
  struct Piece {
    int bit;
    int bits;
    int line;
    int shift;
  };

  static constexpr int pieces(int pair) { return pair < kWholePairs ? 1 : code == 5 ? 5 : 2; }

  static constexpr Piece piece(int pair, int index) {
    if (pair < kWholePairs) {
      return {0, code, pair / kWhole, pair % kWhole * code};
    }
    if (code == 5) {
      return {index, 1, index, 15};
    }
    const int rest = pair - kWholePairs;
    return index == 0 ? Piece{0, 4, rest, 12} : Piece{4, 2, 2, 12 + 2 * rest};
  }

  // Bits [first, first + count) of both halves of a word.
  static constexpr unsigned mask(int first, int count) {
    const unsigned half = ((1U << count) - 1U) << first;
    return half | half << 16;
  }
};

// Bytes of 4 bits, which are names of codes.
struct TableNames {
  static constexpr int kField = 8;
  static constexpr int kColumns = 8;
  static constexpr int kWideLines = 2;
  static constexpr int kLines = 1;
  static constexpr unsigned kMask = 0x0f0f0f0fU;
};

// Calls function with the Planes, Halves or TableNames of `code_bits`-bit codes.
template <typename Function>
[[gnu::always_inline]] inline auto with_planes(int code_bits, Function function) {
  switch (code_bits) {
    case 2:
      return function(Planes<2>());
    case 3:
      return function(Planes<3>());
    case 4:
      return function(TableNames());
    case 5:
      return function(Halves<5>());
    default:
      return function(Halves<6>());
  }
}

}  // namespace saker::kernels
