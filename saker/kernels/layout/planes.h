// SPDX-License-Identifier: Apache-2.0
#pragma once

// The planes and halves of packed_matrix.h: the place of each bit of a field, for all code that reads or
// writes them.

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

// Calls function with the Planes or Halves of `code_bits`-bit codes.
template <typename Function>
[[gnu::always_inline]] inline auto with_planes(int code_bits, Function function) {
  switch (code_bits) {
    case 2:
      return function(Planes<2>());
    case 3:
      return function(Planes<3>());
    case 5:
      return function(Halves<5>());
    default:
      return function(Halves<6>());
  }
}

}  // namespace saker::kernels
