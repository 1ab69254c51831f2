// SPDX-License-Identifier: Apache-2.0
#pragma once

// The place of each bit of codes that have fewer bits than their fields, for all code that reads or
// writes them. A line is 16 words, one of each row of a block (packed_matrix.h).
//
// Nibbles of 2 or 3 bits and bytes of 5 or 6 lie in halves. Columns i and i + 4 of eight are a pair of
// nibbles, columns i and i + 2 of four a pair of bytes: its codes lie at the same bits of the lower
// and the upper half of a word. A half holds eight codes of 2 bits, five of 3, three of 5, or two of 6,
// from its lowest bit on, of consecutive pairs. Its upper bits belong to the last pairs of a run.
//   2 bits  16 columns in a line. Pairs lie in the order 0 1 4 5 2 3 6 7, so that bytes of codes at
//           the same bits are those of packed_matrix.h's nibbles, the even columns of eight or the odd.
//   3 bits  16 columns in a line and a half. The half has pairs 5 and 6 and the lower bits of pair 7 in
//           the lower bytes of halves of words; those of rows 8 to 15 lie in the upper bytes of rows 0
//           to 7. Bit 15 of the line is pair 7's upper bit.
//   5 bits  32 columns in five lines. Bit 15 of line i is the last pair's bit i.
//   6 bits  16 columns in three lines. Bits 12 to 15 of line 0 and of line 1 are the lower bits of pairs
//           6 and 7, bits 12 to 15 of line 2 the upper ones.
// Bytes of 4 bits are names in kTableCodes: two lines become one. The low nibbles of its bytes are
// those of line 2 i, the high ones those of line 2 i + 1.

#include "saker/kernels/layout/packed_kinds.h"

namespace saker::kernels {

// Codes of 2, 3, 5 or 6 bits in halves of words. A run of kColumns columns has kWideLines lines as whole
// fields and kRunBytes bytes in memory. Pair p of a run is the columns first_column(p) and the one
// kDistance after it, in the lower and the upper half of a word.
template <int code>
struct Halves {
  static_assert(code == 2 || code == 3 || code == 5 || code == 6);
  static constexpr int kField = code < 4 ? 4 : 8;
  static constexpr int kDistance = 16 / kField;
  static constexpr int kColumns = code == 5 ? 32 : 16;
  static constexpr int kWideLines = kColumns * kField / 32;
  static constexpr int kRunBytes = kColumns * code * kBlockRows / 8;
  static constexpr int kLines = code == 3 ? 2 : kColumns * code / 32;
  static constexpr bool kHalfLine = code == 3;  // The last line lies in half a line.
  static constexpr int kPairs = kColumns / 2;
  static constexpr int kWhole = 16 / code;  // Codes of a half that lie in one piece.

  static constexpr int pair_of(int column) {
    return column / (2 * kDistance) * kDistance + column % kDistance;
  }

  static constexpr int half_of(int column) { return column % (2 * kDistance) / kDistance; }

  // Bits [bit, bit + bits) of a code lie in this line, from this bit of the half on.
  struct Piece {
    int bit;
    int bits;
    int line;
    int shift;
  };

  static constexpr int pieces(int pair) {
    const bool is_whole = pair < (code == 3 ? 7 : kLines * kWhole);
    return is_whole ? 1 : code == 5 ? 5 : 2;
  }

  static constexpr Piece piece(int pair, int index) {
    if (code == 2) {
      return {0, 2, 0, 2 * (pair % 2 + pair / 4 * 2 + pair % 4 / 2 * 4)};
    }
    if (pieces(pair) == 1) {
      return {0, code, pair / kWhole, pair % kWhole * code};
    }
    if (code == 3) {
      return index == 0 ? Piece{0, 2, 1, 6} : Piece{2, 1, 0, 15};
    }
    if (code == 5) {
      return {index, 1, index, 15};
    }
    const int rest = pair - kLines * kWhole;
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
  static constexpr int kRunBytes = kColumns * 4 * kBlockRows / 8;
  static constexpr unsigned kMask = 0x0f0f0f0fU;
};

// Calls function with the Halves or TableNames of `code_bits`-bit codes.
template <typename Function>
[[gnu::always_inline]] inline auto with_narrow_codes(int code_bits, Function function) {
  switch (code_bits) {
    case 2:
      return function(Halves<2>());
    case 3:
      return function(Halves<3>());
    case 4:
      return function(TableNames());
    case 5:
      return function(Halves<5>());
    default:
      return function(Halves<6>());
  }
}

}  // namespace saker::kernels
