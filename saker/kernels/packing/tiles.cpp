// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/packing/tiles.h"

#include "saker/kernels/packing/codes.h"

#include <algorithm>
#include <cstring>

namespace saker::kernels {
namespace {

constexpr std::size_t kValueBytes = 2;
constexpr std::size_t kLineBytes = kStepColumns * kValueBytes;

// Copies `count` bytes and pads them with zeros to `size`.
void copy_padded(const std::byte* from, std::size_t count, std::byte* to, std::size_t size) {
  std::memcpy(to, from, count);
  std::memset(to + count, 0, size - count);
}

// Packs `columns` values of bf16, at most kChunk.
void pack_values(const RowPlaces& rows, int columns, std::byte* to) {
  for (int k = 0; k < columns; k += kStepColumns) {
    const auto count = static_cast<std::size_t>(std::min(kStepColumns, columns - k));
    for (const std::byte* row : rows.at) {
      copy_padded(
          row + static_cast<std::size_t>(k) * kValueBytes, count * kValueBytes, to, kLineBytes
      );
      to += kLineBytes;
    }
  }
}

using Codes [[gnu::vector_size(16)]] = std::uint8_t;

// Packs 128 codes of 4 bits to words; word j holds the codes of columns j, j + 32, j + 64 and j +
// 96.
void pack_nibbles(const std::byte* from, std::byte* to) {
  Codes even[4];  // Columns 32 i + 2 j.
  Codes odd[4];
  for (int i = 0; i < 4; ++i) {
    Codes both;
    std::memcpy(&both, from + i * sizeof(both), sizeof(both));
    even[i] = both & 15;
    odd[i] = both >> 4;
  }
  using Words [[gnu::vector_size(16)]] = std::uint16_t;
  const auto words = [](const Codes(&codes)[4], Words& first, Words& second) {
    const Codes low = codes[0] | codes[1] << 4;
    const Codes high = codes[2] | codes[3] << 4;
    const Codes begin =
        __builtin_shufflevector(low, high, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    const Codes end = __builtin_shufflevector(
        low, high, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
    );
    std::memcpy(&first, &begin, sizeof(first));
    std::memcpy(&second, &end, sizeof(second));
  };
  Words even_words[2];
  Words odd_words[2];
  words(even, even_words[0], even_words[1]);
  words(odd, odd_words[0], odd_words[1]);
  for (int half = 0; half < 2; ++half) {
    const Words& a = even_words[half];
    const Words& b = odd_words[half];
    const Words begin = __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
    const Words end = __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
    std::memcpy(to + half * 32, &begin, sizeof(begin));
    std::memcpy(to + half * 32 + 16, &end, sizeof(end));
  }
}

// Packs the codes of a chunk of `columns` columns at `words`.
void pack_chunk_codes(
    const RowPlaces& words, const PackedMatrix& matrix, int columns, std::byte* to
) {
  const bool nibbles = matrix.field_bits() == 4;
  constexpr std::size_t kNibbleBytes = kChunkColumns / 2;
  for (const std::byte* row : words.at) {
    if (!nibbles) {
      copy_padded(row, static_cast<std::size_t>(columns), to, kChunkColumns);
      to += kChunkColumns;
      continue;
    }
    std::byte whole[kNibbleBytes];
    if (columns < kChunkColumns) {
      copy_padded(row, static_cast<std::size_t>(columns) / 2, whole, sizeof(whole));
      row = whole;
    }
    pack_nibbles(row, to);
    to += kNibbleBytes;
  }
}

// Packs scales of small floats as bf16, which holds them exactly.
void pack_scales(
    const BlockRows& rows,
    const PackedMatrix& matrix,
    const WeightFormat& format,
    int chunk,
    std::byte* to
) {
  const int groups = kChunkColumns / matrix.group;
  for (int lane = 0; lane < kBlockRows; ++lane) {
    for (int i = 0; i < groups; ++i) {
      const int group = chunk * groups + i;
      float scale = 0;
      if (group < matrix.groups()) {
        const std::size_t offset = static_cast<std::size_t>(group) * matrix.group * format.bits / 8;
        scale = group_scale(format, rows.weight.at[lane] + offset, rows.scales.at[lane][group]);
      }
      const std::uint16_t bits = bf16_of(scale);
      std::memcpy(to, &bits, sizeof(bits));
      to += sizeof(bits);
    }
  }
}

void pack_codes(
    const BlockRows& rows, const PackedMatrix& matrix, const WeightFormat& format, std::byte* to
) {
  for (int chunk = 0; chunk < matrix.chunks(); ++chunk) {
    const int k = chunk * kChunkColumns;
    const RowPlaces words = rows.weight.moved(static_cast<std::size_t>(k) * format.bits / 8);
    pack_chunk_codes(words, matrix, std::min(kChunkColumns, matrix.columns - k), to);
    pack_scales(rows, matrix, format, chunk, to + matrix.chunk_code_bytes());
    to += matrix.chunk_bytes();
  }
}

}  // namespace

void pack_tiled_block(
    const BlockRows& rows, const PackedMatrix& matrix, const WeightFormat& format, std::byte* to
) {
  if (format.kind == WeightKind::kBFloat16) {
    pack_values(rows.weight, matrix.columns, to);
  } else {
    pack_codes(rows, matrix, format, to);
  }
}

}  // namespace saker::kernels
