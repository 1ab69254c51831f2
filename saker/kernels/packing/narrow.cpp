// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/packing/narrow.h"

#include "saker/kernels/layout/narrow_codes.h"

#include <cstring>
#include <utility>

namespace saker::kernels {
namespace {

// Rows 8 to 15 of a line of bytes, which lie above those of rows 0 to 7.
constexpr int kFoldedRows = kBlockRows / 2;
constexpr int kFoldedShift = 8;

// Calls function(0), function(1), ... with numbers that are constants.
template <int count, typename Function>
[[gnu::always_inline]] inline void with_each(Function function) {
  [&]<int... i>(std::integer_sequence<int, i...>) {
    (function(std::integral_constant<int, i>()), ...);
  }(std::make_integer_sequence<int, count>());
}

// Four lanes at a time, whose halves stay in registers.
template <int code>
void narrow_run(Halves<code>, const std::uint32_t (*lines)[kBlockRows], std::byte* to) {
  using Kind = Halves<code>;
  using Lanes [[gnu::vector_size(16)]] = std::uint32_t;
  std::uint32_t halves[Kind::kLines][kBlockRows];
  for (int lane = 0; lane < kBlockRows; lane += 4) {
    Lanes narrow[Kind::kLines] = {};
    with_each<Kind::kPairs>([&](auto pair) {
      constexpr int kField = pair % Kind::kDistance * Kind::kField;
      Lanes codes;
      std::memcpy(&codes, &lines[pair / Kind::kDistance][lane], sizeof(codes));
      with_each<Kind::pieces(pair)>([&](auto index) {
        constexpr auto kPiece = Kind::piece(pair, index);
        constexpr std::uint32_t kMask = Kind::mask(0, kPiece.bits);
        narrow[kPiece.line] |= (codes >> (kField + kPiece.bit) & kMask) << kPiece.shift;
      });
    });
    for (int line = 0; line < Kind::kLines; ++line) {
      std::memcpy(&halves[line][lane], &narrow[line], sizeof(narrow[line]));
    }
  }
  if constexpr (Kind::kHalfLine) {
    std::uint32_t* last = halves[Kind::kLines - 1];
    for (int lane = 0; lane < kFoldedRows; ++lane) {
      last[lane] |= last[lane + kFoldedRows] << kFoldedShift;
    }
  }
  std::memcpy(to, halves, Kind::kRunBytes);
}

void narrow_run(TableNames, const std::uint32_t (*lines)[kBlockRows], std::byte* to) {
  std::uint32_t names[kBlockRows];
  for (int lane = 0; lane < kBlockRows; ++lane) {
    names[lane] = lines[0][lane] | lines[1][lane] << 4;
  }
  std::memcpy(to, names, sizeof(names));
}

// Bits [first, first + count) of a lane of a line.
std::uint32_t bits_of(const std::byte* lines, int line, int lane, int first, int count) {
  std::uint32_t word = 0;
  std::memcpy(&word, lines + sizeof(word) * (line * kBlockRows + lane), sizeof(word));
  return word >> first & ((1U << count) - 1U);
}

template <int code>
std::uint32_t code_of_run(Halves<code>, const std::byte* halves, int k, int lane) {
  using Kind = Halves<code>;
  const int pair = Kind::pair_of(k);
  std::uint32_t value = 0;
  for (int index = 0; index < Kind::pieces(pair); ++index) {
    const auto piece = Kind::piece(pair, index);
    const bool is_folded = Kind::kHalfLine && piece.line == Kind::kLines - 1;
    const int row = is_folded ? lane % kFoldedRows : lane;
    const int up = is_folded ? lane / kFoldedRows * kFoldedShift : 0;
    const int at = 16 * Kind::half_of(k) + piece.shift + up;
    value |= bits_of(halves, piece.line, row, at, piece.bits) << piece.bit;
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
  with_narrow_codes(code_bits, [&](auto codes) {
    using Kind = decltype(codes);
    for (int line = 0; line < count; line += Kind::kWideLines) {
      narrow_run(codes, lines + line, to);
      to += Kind::kRunBytes;
    }
  });
}

std::uint32_t narrow_code(const std::byte* lines, int code_bits, int k, int lane) {
  return with_narrow_codes(code_bits, [&](auto codes) {
    using Kind = decltype(codes);
    const std::byte* run = lines + k / Kind::kColumns * Kind::kRunBytes;
    return code_of_run(codes, run, k % Kind::kColumns, lane);
  });
}

}  // namespace saker::kernels
