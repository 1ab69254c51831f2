// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/packing/narrow.h"

#include "saker/kernels/layout/planes.h"

#include <cstring>
#include <utility>

namespace saker::kernels {
namespace {

template <int code>
void narrow_run(
    Planes<code>, const std::uint32_t (*lines)[kBlockRows], std::uint32_t (*planes)[kBlockRows]
) {
  using Kind = Planes<code>;
  constexpr std::uint32_t kLow = Kind::mask(0, Kind::kLow);
  constexpr std::uint32_t kHigh = Kind::mask(0, Kind::kHigh);
  for (int line = 0; line < Kind::kWideLines; ++line) {
    for (int lane = 0; lane < kBlockRows; ++lane) {
      const std::uint32_t word = lines[line][lane];
      planes[Kind::low_line(line)][lane] |= (word & kLow) << Kind::low_shift(line);
      if constexpr (Kind::kHigh > 0) {
        planes[Kind::high_line(line)][lane] |= (word >> Kind::kLow & kHigh)
                                               << Kind::high_shift(line);
      }
    }
  }
}

// Calls function(0), function(1), ... with numbers that are constants.
template <int count, typename Function>
[[gnu::always_inline]] inline void with_each(Function function) {
  [&]<int... i>(std::integer_sequence<int, i...>) {
    (function(std::integral_constant<int, i>()), ...);
  }(std::make_integer_sequence<int, count>());
}

// Four lanes at a time, whose halves stay in registers.
template <int code>
void narrow_run(
    Halves<code>, const std::uint32_t (*lines)[kBlockRows], std::uint32_t (*halves)[kBlockRows]
) {
  using Kind = Halves<code>;
  using Lanes [[gnu::vector_size(16)]] = std::uint32_t;
  for (int lane = 0; lane < kBlockRows; lane += 4) {
    Lanes narrow[Kind::kLines] = {};
    with_each<Kind::kPairs>([&](auto pair) {
      Lanes codes;
      std::memcpy(&codes, &lines[pair / 2][lane], sizeof(codes));
      with_each<Kind::pieces(pair)>([&](auto index) {
        constexpr auto kPiece = Kind::piece(pair, index);
        constexpr std::uint32_t kMask = Kind::mask(0, kPiece.bits);
        narrow[kPiece.line] |= (codes >> (pair % 2 * 8 + kPiece.bit) & kMask) << kPiece.shift;
      });
    });
    for (int line = 0; line < Kind::kLines; ++line) {
      std::memcpy(&halves[line][lane], &narrow[line], sizeof(narrow[line]));
    }
  }
}

void narrow_run(
    TableNames, const std::uint32_t (*lines)[kBlockRows], std::uint32_t (*names)[kBlockRows]
) {
  for (int lane = 0; lane < kBlockRows; ++lane) {
    names[0][lane] = lines[0][lane] | lines[1][lane] << 4;
  }
}

// Bits [first, first + count) of a lane of a line.
std::uint32_t bits_of(const std::byte* lines, int line, int lane, int first, int count) {
  std::uint32_t word = 0;
  std::memcpy(&word, lines + sizeof(word) * (line * kBlockRows + lane), sizeof(word));
  return word >> first & ((1U << count) - 1U);
}

template <int code>
std::uint32_t code_of_run(Planes<code>, const std::byte* planes, int k, int lane) {
  using Kind = Planes<code>;
  const int line = k / 8;
  const int field = k % 8 * Kind::kField;
  const int low_at = field + Kind::low_shift(line);
  std::uint32_t value = bits_of(planes, Kind::low_line(line), lane, low_at, Kind::kLow);
  if constexpr (Kind::kHigh > 0) {
    const int high_at = field + Kind::high_shift(line);
    value |= bits_of(planes, Kind::high_line(line), lane, high_at, Kind::kHigh) << Kind::kLow;
  }
  return value;
}

template <int code>
std::uint32_t code_of_run(Halves<code>, const std::byte* halves, int k, int lane) {
  using Kind = Halves<code>;
  const int pair = Kind::pair_of(k);
  std::uint32_t value = 0;
  for (int index = 0; index < Kind::pieces(pair); ++index) {
    const auto piece = Kind::piece(pair, index);
    const int at = 16 * Kind::half_of(k) + piece.shift;
    value |= bits_of(halves, piece.line, lane, at, piece.bits) << piece.bit;
  }
  return value;
}

std::uint32_t code_of_run(TableNames, const std::byte* names, int k, int lane) {
  return kTableCodes[bits_of(names, 0, lane, k % 4 * 8 + k / 4 * 4, 4)];
}

}  // namespace

void narrow_lines(
    const std::uint32_t (*lines)[kBlockRows], int count, int code_bits, std::byte* to
) {
  with_planes(code_bits, [&](auto planes) {
    using Kind = decltype(planes);
    for (int line = 0; line < count; line += Kind::kWideLines) {
      std::uint32_t run[Kind::kLines][kBlockRows] = {};
      narrow_run(planes, lines + line, run);
      std::memcpy(to, run, sizeof(run));
      to += sizeof(run);
    }
  });
}

std::uint32_t narrow_code(const std::byte* lines, int code_bits, int k, int lane) {
  return with_planes(code_bits, [&](auto planes) {
    using Kind = decltype(planes);
    const int run_bytes = Kind::kLines * kBlockRows * 4;
    const std::byte* run = lines + k / Kind::kColumns * run_bytes;
    return code_of_run(planes, run, k % Kind::kColumns, lane);
  });
}

}  // namespace saker::kernels
