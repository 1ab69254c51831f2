// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/packing/codes.h"
#include "saker/kernels/packing/narrow.h"
#include "saker/kernels/packing/pack.h"

namespace saker::kernels {
namespace {

float scale_at(ScaleKind kind, const std::byte* scales, int index) {
  switch (kind) {
    case ScaleKind::kFloat32:
      return load_unaligned<float>(scales + 4 * index);
    case ScaleKind::kBFloat16:
      return bf16_value(load_unaligned<std::uint16_t>(scales + 2 * index));
    default:
      return f16_value(load_unaligned<std::uint16_t>(scales + 2 * index));
  }
}

float value_of(const PackedMatrix& matrix, std::uint32_t code) {
  switch (matrix.kind) {
    case PackedKind::kE2m1:
      return e2m1_value(code);
    case PackedKind::kE4m3:
      return e4m3_value(code);
    default:
      return static_cast<float>(code);
  }
}

// The code of column k of a group.
std::uint32_t code_at(const PackedMatrix& matrix, const std::byte* group, int k, int lane) {
  if (matrix.is_narrow()) {
    return narrow_code(group, matrix.code_bits, k, lane);
  }
  const int field = matrix.field_bits();
  const int codes = 32 / field;
  const auto word = load_unaligned<std::uint32_t>(group + 4 * (k / codes * kBlockRows + lane));
  return word >> (k % codes * field) & ((1U << field) - 1U);
}

// A row's terms in one group.
struct RowTerms {
  float scale;
  float bias;
};

std::uint32_t word_at(const std::byte* lines, int line, int lane) {
  return load_unaligned<std::uint32_t>(lines + 4 * (line * kBlockRows + lane));
}

// Number `index` of a row's sixteen.
float six_bits_at(const std::byte* lines, int index, int lane) {
  if (index < 15) {
    return static_cast<float>(word_at(lines, index / 5, lane) >> (6 * (index % 5)) & 63U);
  }
  const auto two = [&](int line) { return word_at(lines, line, lane) >> 30 << (2 * line); };
  return static_cast<float>(two(0) | two(1) | two(2));
}

// Byte `index` of a row's.
std::uint32_t byte_at(const std::byte* lines, int index, int lane) {
  return word_at(lines, index / 4, lane) >> (8 * (index % 4)) & 0xffU;
}

// Group `index` of the super-block whose terms are given.
RowTerms super_terms(const PackedMatrix& matrix, const std::byte* terms, int index, int lane) {
  const float d = scale_at(ScaleKind::kFloat16, terms, lane);
  const auto dmin = [&] { return scale_at(ScaleKind::kFloat16, terms, kBlockRows + lane); };
  switch (matrix.terms) {
    case TermKind::kPairs: {
      const std::byte* lines = terms + 64;
      return {d * six_bits_at(lines, index, lane), -(dmin() * six_bits_at(lines, 8 + index, lane))};
    }
    case TermKind::kNibbles: {
      const std::uint32_t byte = byte_at(terms + 64, index, lane);
      return {d * static_cast<float>(byte & 15U), -(dmin() * static_cast<float>(byte >> 4))};
    }
    case TermKind::kSixBits:
      return {d * (six_bits_at(terms + 32, index, lane) - 32.0F), 0.0F};
    case TermKind::kSplit: {
      const std::uint32_t low = word_at(terms + 32, 0, lane) >> (4 * index) & 15U;
      const auto half = load_unaligned<std::uint16_t>(terms + 96 + 2 * lane);
      const std::uint32_t high = static_cast<std::uint32_t>(half) >> (2 * index) & 3U;
      return {d * (static_cast<float>(low | high << 4) - 32.0F), 0.0F};
    }
    default:
      return {d * (static_cast<float>(byte_at(terms + 32, index, lane)) - 128.0F), 0.0F};
  }
}

RowTerms group_terms(const PackedMatrix& matrix, const std::byte* terms, int lane) {
  const float scale = scale_at(matrix.scale_kind, terms, lane);
  const bool has_bias = matrix.terms == TermKind::kScaleBias;
  return {scale, has_bias ? scale_at(matrix.scale_kind, terms, kBlockRows + lane) : 0.0F};
}

// Unpacks columns [first, first + matrix.group) of the codes at `codes`.
float* unpack_group(
    const PackedMatrix& matrix,
    const std::byte* codes,
    int first,
    int lane,
    const RowTerms& terms,
    float* values
) {
  for (int k = first; k < first + matrix.group; ++k) {
    const std::uint32_t code = code_at(matrix, codes, k, lane);
    if (matrix.zero != 0) {
      const int off = static_cast<int>(code) - matrix.zero;
      *values++ = terms.scale * static_cast<float>(off);
    } else {
      *values++ = terms.scale * value_of(matrix, code) + terms.bias;
    }
  }
  return values;
}

void unpack_super_blocks(
    const PackedMatrix& matrix, const std::byte* block, int lane, float* values
) {
  for (int k = 0; k < matrix.columns; k += kSuperColumns, block += matrix.super_bytes()) {
    const std::byte* terms = block + matrix.super_bytes() - matrix.super_term_bytes();
    for (int g = 0; g < matrix.super_groups(); ++g) {
      const RowTerms of = super_terms(matrix, terms, g, lane);
      values = unpack_group(matrix, block, g * matrix.group, lane, of, values);
    }
  }
}

void unpack_codes(const PackedMatrix& matrix, const std::byte* block, int lane, float* values) {
  if (matrix.in_super_blocks()) {
    return unpack_super_blocks(matrix, block, lane, values);
  }
  for (int g = 0; g < matrix.groups(); ++g) {
    const RowTerms terms = group_terms(matrix, block + matrix.word_bytes(), lane);
    values = unpack_group(matrix, block, 0, lane, terms, values);
    block += matrix.group_bytes();
  }
}

void unpack_tiled_codes(
    const PackedMatrix& matrix, const std::byte* block, int lane, float* values
) {
  const bool nibbles = matrix.field_bits() == 4;
  const std::size_t row_codes = kChunkColumns / (nibbles ? 2 : 1);
  for (int k = 0; k < matrix.columns; ++k) {
    const int column = k % kChunkColumns;
    const std::byte* chunk =
        block + static_cast<std::size_t>(k / kChunkColumns) * matrix.chunk_bytes();
    const std::byte* codes = chunk + static_cast<std::size_t>(lane) * row_codes;
    const std::byte* terms = chunk + matrix.chunk_code_bytes() +
                             static_cast<std::size_t>(lane) * matrix.chunk_term_bytes() +
                             column / matrix.group * matrix.row_term_bytes();
    const int step = column / kStepColumns;
    const unsigned code =
        nibbles ? load_unaligned<std::uint16_t>(codes + 2 * (column % kStepColumns)) >> (4 * step) &
                      0xfU
                : std::to_integer<unsigned>(codes[column]);
    values[k] = scale_at(matrix.scale_kind, terms, 0) * value_of(matrix, code);
  }
}

void unpack_row_in_place(const std::byte* row, int columns, float* values) {
  for (int k = 0; k < columns; ++k) {
    values[k] = bf16_value(load_unaligned<std::uint16_t>(row + std::ptrdiff_t{2} * k));
  }
}

void unpack_tiled_row(const PackedMatrix& matrix, const std::byte* block, int lane, float* values) {
  if (matrix.has_groups()) {
    unpack_tiled_codes(matrix, block, lane, values);
    return;
  }
  const std::byte* row = block + lane * matrix.tile_row_bytes();
  for (int k = 0; k < matrix.columns; ++k) {
    const std::byte* step = row + k / kStepColumns * matrix.tile_step_bytes();
    values[k] = bf16_value(load_unaligned<std::uint16_t>(step + 2 * (k % kStepColumns)));
  }
}

}  // namespace

void unpack_row(const PackedMatrix& matrix, int row, float* values) {
  const std::byte* block = matrix.block(row / kBlockRows);
  const int lane = row % kBlockRows;
  if (matrix.in_place()) {
    unpack_row_in_place(block + std::ptrdiff_t{2} * lane * matrix.columns, matrix.columns, values);
    return;
  }
  if (matrix.order == PackedOrder::kTileOrder) {
    unpack_tiled_row(matrix, block, lane, values);
    return;
  }
  const auto value_at = [&](int k, std::size_t size) {
    return block + (static_cast<std::size_t>(k) * kBlockRows + lane) * size;
  };
  switch (matrix.kind) {
    case PackedKind::kFloat32:
      for (int k = 0; k < matrix.columns; ++k) {
        values[k] = load_unaligned<float>(value_at(k, 4));
      }
      return;
    case PackedKind::kFloat16:
      for (int k = 0; k < matrix.columns; ++k) {
        values[k] = f16_value(load_unaligned<std::uint16_t>(value_at(k, 2)));
      }
      return;
    case PackedKind::kBFloat16:
      for (int k = 0; k < matrix.columns; ++k) {
        const auto pair = load_unaligned<std::uint32_t>(value_at(k / 2, 4));
        values[k] = bf16_value(static_cast<std::uint16_t>(k % 2 == 0 ? pair : pair >> 16));
      }
      return;
    default:
      unpack_codes(matrix, block, lane, values);
  }
}

}  // namespace saker::kernels
