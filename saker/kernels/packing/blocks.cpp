// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/packing/blocks.h"

#include "saker/kernels/layout/block_format.h"
#include "saker/kernels/packing/codes.h"

#include <cstring>

namespace saker::kernels {
namespace {

// Sixteen bytes, which every machine has in a register.
using Bytes [[gnu::vector_size(16)]] = std::uint8_t;
using Shorts [[gnu::vector_size(16)]] = std::uint16_t;
using Quads [[gnu::vector_size(16)]] = std::uint64_t;

Bytes load_bytes(const std::byte* from) {
  Bytes bytes;
  std::memcpy(&bytes, from, sizeof(bytes));
  return bytes;
}

// Writes sixteen codes as bytes.
std::uint32_t* store_bytes(Bytes codes, std::uint32_t* words) {
  std::memcpy(words, &codes, sizeof(codes));
  return words + sizeof(codes) / sizeof(*words);
}

// Writes 32 codes as nibbles, the ones of `first` before those of `second`.
std::uint32_t* store_nibbles(Bytes first, Bytes second, std::uint32_t* words) {
  const auto joined = [](Bytes codes) {
    const auto pairs = reinterpret_cast<Shorts>(codes);
    return reinterpret_cast<Bytes>((pairs & 0x0fU) | (pairs >> 4 & 0xf0U));
  };
  const Bytes all = __builtin_shufflevector(
      joined(first), joined(second), 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30
  );
  return store_bytes(all, words);
}

Bytes low_nibbles(Bytes bytes) {
  return bytes & 0x0fU;
}

Bytes high_nibbles(Bytes bytes) {
  return bytes >> 4;
}

// Bit i of two bytes as bit 4 of byte i.
Bytes fifth_bits(const std::byte* from) {
  constexpr std::uint64_t kEveryByte = 0x0101010101010101U;
  const Quads spread = {
      std::to_integer<std::uint64_t>(from[0]) * kEveryByte,
      std::to_integer<std::uint64_t>(from[1]) * kEveryByte,
  };
  constexpr Bytes kBits = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
  return reinterpret_cast<Bytes>((reinterpret_cast<Bytes>(spread) & kBits) != 0) & 0x10U;
}

// Codes of 32 columns in a block of kQ40 to kQ51; byte i of sixteen holds columns i and i + 16.
void read_simple(const std::byte* nibbles, const std::byte* fifths, std::uint32_t* words) {
  const Bytes pairs = load_bytes(nibbles);
  const Bytes first = low_nibbles(pairs);
  const Bytes second = high_nibbles(pairs);
  if (fifths == nullptr) {
    store_nibbles(first, second, words);
    return;
  }
  words = store_bytes(first | fifth_bits(fifths), words);
  store_bytes(second | fifth_bits(fifths + 2), words);
}

// Names of 32 columns, which lie as codes of kQ40 do.
std::uint32_t* read_names(const std::byte* from, std::uint32_t* words) {
  const Bytes pairs = load_bytes(from);
  return store_bytes(high_nibbles(pairs), store_bytes(low_nibbles(pairs), words));
}

void read_signed_bytes(const std::byte* from, std::uint32_t* words) {
  words = store_bytes(load_bytes(from) ^ 0x80U, words);
  store_bytes(load_bytes(from + 16) ^ 0x80U, words);
}

// 32 bytes hold the columns of two groups of 32: low nibbles, then high ones.
void read_q4k(const std::byte* from, std::uint32_t* words) {
  for (int pair = 0; pair < 4; ++pair, from += 32) {
    const Bytes first = load_bytes(from);
    const Bytes second = load_bytes(from + 16);
    words = store_nibbles(first, second, words);
    words = store_nibbles(high_nibbles(first), high_nibbles(second), words);
  }
}

// As above; bit g of 32 further bytes is the fifth bit of group g.
void read_q5k(const std::byte* fifths, const std::byte* from, std::uint32_t* words) {
  for (int pair = 0; pair < 4; ++pair, from += 32) {
    for (int high = 0; high < 2; ++high) {
      for (int half = 0; half < 2; ++half) {
        const Bytes pairs = load_bytes(from + 16 * half);
        const Bytes low = high == 0 ? low_nibbles(pairs) : high_nibbles(pairs);
        const Bytes fifth = load_bytes(fifths + 16 * half) >> (2 * pair + high) & 1U;
        words = store_bytes(low | fifth << 4, words);
      }
    }
  }
}

// For 128 columns each: 64 bytes hold the low nibbles of four times 32, 32 bytes the bits above.
void read_q6k(const std::byte* low, const std::byte* high, std::uint32_t* words) {
  for (int half = 0; half < 2; ++half, low += 64, high += 32) {
    for (int quarter = 0; quarter < 4; ++quarter) {
      for (int i = 0; i < 32; i += 16) {
        const Bytes pairs = load_bytes(low + quarter % 2 * 32 + i);
        const Bytes four = quarter < 2 ? low_nibbles(pairs) : high_nibbles(pairs);
        const Bytes two = load_bytes(high + i) >> (2 * quarter) & 3U;
        words = store_bytes(four | two << 4, words);
      }
    }
  }
}

// For 128 columns each: 32 bytes hold the lowest bits of four times 32. Bits i of `thirds`, if any, are
// the third ones of columns 32 i on.
void read_two_bits(const std::byte* low, const std::byte* thirds, std::uint32_t* words) {
  for (int part = 0; part < 8; ++part) {
    Bytes codes[2];
    for (int i = 0; i < 2; ++i) {
      codes[i] = load_bytes(low + part / 4 * 32 + 16 * i) >> (part % 4 * 2) & 3U;
      if (thirds != nullptr) {
        codes[i] |= (load_bytes(thirds + 16 * i) >> part & 1U) << 2;
      }
    }
    words = store_nibbles(codes[0], codes[1], words);
  }
}

// Packs the 16 bits at `offset` of each block.
std::byte* pack_halves(const RowPlaces& blocks, std::size_t offset, std::byte* to) {
  std::uint16_t line[kBlockRows];
  for (int lane = 0; lane < kBlockRows; ++lane) {
    line[lane] = load_unaligned<std::uint16_t>(blocks.at[lane] + offset);
  }
  std::memcpy(to, line, sizeof(line));
  return to + sizeof(line);
}

struct SixBits {
  std::uint8_t numbers[16];
};

// The sixteen scales of kQ3K: the lower four bits, then the upper two.
SixBits read_sixteen(const std::byte* from) {
  SixBits six;
  for (int i = 0; i < 16; ++i) {
    const unsigned low = std::to_integer<unsigned>(from[i % 8]) >> (i / 8 * 4) & 15U;
    const unsigned high = std::to_integer<unsigned>(from[8 + i % 4]) >> (i / 4 * 2) & 3U;
    six.numbers[i] = static_cast<std::uint8_t>(low | high << 4);
  }
  return six;
}

// Packs sixteen numbers of each row as TermKind::kSixBits.
void pack_six_bits(
    const RowPlaces& blocks, std::size_t offset, SixBits (*read)(const std::byte*), std::byte* to
) {
  std::uint32_t lines[3][kBlockRows];
  for (int lane = 0; lane < kBlockRows; ++lane) {
    const SixBits six = read(blocks.at[lane] + offset);
    for (int line = 0; line < 3; ++line) {
      std::uint32_t word = static_cast<std::uint32_t>(six.numbers[15]) >> (2 * line) << 30;
      for (int i = 0; i < 5; ++i) {
        word |= static_cast<std::uint32_t>(six.numbers[5 * line + i]) << (6 * i);
      }
      lines[line][lane] = word;
    }
  }
  std::memcpy(to, lines, sizeof(lines));
}

// Packs eight scales and eight minima of each row as TermKind::kPairs, four numbers of a row at a
// time, in all rows at once.
void pack_pairs(const RowPlaces& blocks, std::size_t offset, std::byte* to) {
  std::uint32_t words[3][kBlockRows];  // As the file has them.
  for (int lane = 0; lane < kBlockRows; ++lane) {
    for (int i = 0; i < 3; ++i) {
      const std::byte* at = blocks.at[lane] + offset + sizeof(std::uint32_t) * i;
      words[i][lane] = load_unaligned<std::uint32_t>(at);
    }
  }
  std::uint32_t fours[4][kBlockRows];  // A number in each byte.
  for (int lane = 0; lane < kBlockRows; ++lane) {
    const std::uint32_t scales = words[0][lane];
    const std::uint32_t minima = words[1][lane];
    const std::uint32_t low = words[2][lane];
    fours[0][lane] = scales & 0x3f3f3f3fU;
    fours[1][lane] = (low & 0x0f0f0f0fU) | (scales >> 2 & 0x30303030U);
    fours[2][lane] = minima & 0x3f3f3f3fU;
    fours[3][lane] = (low >> 4 & 0x0f0f0f0fU) | (minima >> 2 & 0x30303030U);
  }
  std::uint32_t lines[3][kBlockRows];
  for (int line = 0; line < 3; ++line) {
    for (int lane = 0; lane < kBlockRows; ++lane) {
      lines[line][lane] = fours[3][lane] >> (24 + 2 * line) << 30;
    }
    for (int i = 0; i < 5; ++i) {
      const int number = 5 * line + i;
      for (int lane = 0; lane < kBlockRows; ++lane) {
        lines[line][lane] |= (fours[number / 4][lane] >> (number % 4 * 8) & 63U) << (6 * i);
      }
    }
  }
  std::memcpy(to, lines, sizeof(lines));
}

// Packs sixteen bytes of each row, changed in those bits.
void pack_bytes(const RowPlaces& blocks, std::size_t offset, std::uint32_t change, std::byte* to) {
  std::uint32_t lines[4][kBlockRows];
  for (int lane = 0; lane < kBlockRows; ++lane) {
    for (int line = 0; line < 4; ++line) {
      const std::byte* at = blocks.at[lane] + offset + sizeof(std::uint32_t) * line;
      lines[line][lane] = load_unaligned<std::uint32_t>(at) ^ change;
    }
  }
  std::memcpy(to, lines, sizeof(lines));
}

// Packs the scales of kIq4Xs as TermKind::kSplit.
void pack_split(const RowPlaces& blocks, std::byte* to) {
  std::uint32_t low[kBlockRows];
  for (int lane = 0; lane < kBlockRows; ++lane) {
    low[lane] = load_unaligned<std::uint32_t>(blocks.at[lane] + 4);
  }
  std::memcpy(to, low, sizeof(low));
  pack_halves(blocks, 2, to + sizeof(low));
}

}  // namespace

void read_block_codes(BlockKind kind, const std::byte* block, std::uint32_t* words) {
  switch (kind) {
    case BlockKind::kQ40:
      return read_simple(block + 2, nullptr, words);
    case BlockKind::kQ41:
      return read_simple(block + 4, nullptr, words);
    case BlockKind::kQ50:
      return read_simple(block + 6, block + 2, words);
    case BlockKind::kQ51:
      return read_simple(block + 8, block + 4, words);
    case BlockKind::kQ80:
      return read_signed_bytes(block + 2, words);
    case BlockKind::kQ4K:
      return read_q4k(block + 16, words);
    case BlockKind::kQ5K:
      return read_q5k(block + 16, block + 48, words);
    case BlockKind::kQ2K:
      return read_two_bits(block + 16, nullptr, words);
    case BlockKind::kQ3K:
      return read_two_bits(block + 32, block, words);
    case BlockKind::kIq4Nl:
      read_names(block + 2, words);
      return;
    case BlockKind::kIq4Xs:
      for (int i = 0; i < 8; ++i) {
        words = read_names(block + 8 + 16 * i, words);
      }
      return;
    default:
      return read_q6k(block, block + 128, words);
  }
}

void pack_block_terms(BlockKind kind, const RowPlaces& blocks, std::byte* to) {
  switch (kind) {
    case BlockKind::kQ4K:
    case BlockKind::kQ5K:
      return pack_pairs(blocks, 4, pack_halves(blocks, 2, pack_halves(blocks, 0, to)));
    case BlockKind::kQ6K:
      return pack_bytes(blocks, 192, 0x80808080U, pack_halves(blocks, 208, to));
    case BlockKind::kQ2K:
      return pack_bytes(blocks, 0, 0, pack_halves(blocks, 82, pack_halves(blocks, 80, to)));
    case BlockKind::kQ3K:
      return pack_six_bits(blocks, 96, read_sixteen, pack_halves(blocks, 108, to));
    case BlockKind::kIq4Xs:
      return pack_split(blocks, pack_halves(blocks, 0, to));
    case BlockKind::kQ41:
    case BlockKind::kQ51:
      pack_halves(blocks, 2, pack_halves(blocks, 0, to));
      return;
    default:
      pack_halves(blocks, 0, to);
  }
}

}  // namespace saker::kernels
