// SPDX-License-Identifier: Apache-2.0
#pragma once

// The planes of packed_matrix.h: the place of each bit of a field, for all code that reads or
// writes them.

namespace saker::kernels {

inline constexpr int kRunColumns = 32;  // Columns of a run of lines.

// Fields of `field` bits, 4 or 8, whose codes have `code` bits, at least half of them. A run has
// `field` lines as products read them and `code` lines in memory.
template <int field, int code>
struct Planes {
  static_assert(field / 2 <= code && code < field);
  static constexpr int kField = field;
  static constexpr int kCode = code;
  static constexpr int kLow = field / 2;  // Bits of the lower plane, and its lines.
  static constexpr int kHigh = code - kLow;
  static constexpr int kPerHighLine = kHigh == 0 ? 1 : field / kHigh;  // Run lines per upper line.

  static constexpr int low_line(int line) { return line / 2; }

  static constexpr int low_shift(int line) { return line % 2 * kLow; }

  static constexpr int high_line(int line) { return kLow + line / kPerHighLine; }

  static constexpr int high_shift(int line) { return line % kPerHighLine * kHigh; }

  // Bits [first, first + count) of all fields of a word.
  static constexpr unsigned mask(int first, int count) {
    unsigned word = 0;
    for (int at = 0; at < 32; at += field) {
      word |= ((1U << count) - 1U) << (at + first);
    }
    return word;
  }
};

// Calls function with the planes of `code_bits`-bit codes.
template <typename Function>
[[gnu::always_inline]] inline auto with_planes(int code_bits, Function function) {
  switch (code_bits) {
    case 2:
      return function(Planes<4, 2>());
    case 3:
      return function(Planes<4, 3>());
    case 5:
      return function(Planes<8, 5>());
    default:
      return function(Planes<8, 6>());
  }
}

}  // namespace saker::kernels
