// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/packing/pack.h"

#include "saker/kernels/cpu/runtime/thread_pool.h"
#include "saker/kernels/layout/block_format.h"
#include "saker/kernels/packing/blocks.h"
#include "saker/kernels/packing/codes.h"
#include "saker/kernels/packing/narrow.h"
#include "saker/kernels/packing/tiles.h"
#include "saker/kernels/packing/transpose.h"
#include "saker/kernels/packing/widen.h"

#include <algorithm>
#include <cstring>

namespace saker::kernels {
namespace {

// Bytes of a row of each tensor; 0 without the tensor.
struct RowBytes {
  std::size_t weight = 0;
  std::size_t scales = 0;
  std::size_t biases = 0;
};

std::size_t row_bytes(const std::optional<Tensor>& tensor) {
  return tensor ? dtype_size(tensor->dtype) * static_cast<std::size_t>(tensor->shape[1]) : 0;
}

// Gives the rows of consecutive parts, block by block.
class Source {
 public:
  Source(const std::vector<WeightTensors>& parts, int rows) : parts_(parts), rows_(rows) {
    bytes_ = {row_bytes(parts[0].weight), row_bytes(parts[0].scales), row_bytes(parts[0].biases)};
    if (rows % kBlockRows != 0) {
      zeros_.resize(std::max({bytes_.weight, bytes_.scales, bytes_.biases}));
    }
  }

  BlockRows block(int index) const {
    BlockRows rows;
    const int first = index * kBlockRows;
    for (int lane = 0; lane < kBlockRows; ++lane) {
      if (first + lane >= rows_) {
        rows.weight.at[lane] = rows.scales.at[lane] = rows.biases.at[lane] = zeros_.data();
        continue;
      }
      std::size_t row = static_cast<std::size_t>(first) + static_cast<std::size_t>(lane);
      std::size_t part = 0;
      while (row >= static_cast<std::size_t>(parts_[part].weight.shape[0])) {
        row -= static_cast<std::size_t>(parts_[part++].weight.shape[0]);
      }
      const WeightTensors& from = parts_[part];
      rows.weight.at[lane] = from.weight.data.get() + row * bytes_.weight;
      rows.scales.at[lane] = from.scales ? from.scales->data.get() + row * bytes_.scales : nullptr;
      rows.biases.at[lane] = from.biases ? from.biases->data.get() + row * bytes_.biases : nullptr;
    }
    return rows;
  }

 private:
  const std::vector<WeightTensors>& parts_;
  int rows_;
  RowBytes bytes_;
  std::vector<std::byte> zeros_;
};

// Packs one line of lanes after the other.
template <typename Value>
void pack_values(const RowPlaces& rows, int count, std::byte* to) {
  for (int i = 0; i < count; i += kChunk) {
    const std::size_t bytes = static_cast<std::size_t>(i) * sizeof(Value);
    transpose<Value>(
        rows.moved(bytes),
        std::min(kChunk, count - i),
        to + bytes * kBlockRows,
        kBlockRows * sizeof(Value)
    );
  }
}

void pack_pairs(const RowPlaces& rows, int columns, std::byte* to) {
  pack_values<std::uint32_t>(rows, columns / 2, to);
  if (columns % 2 == 0) {
    return;
  }
  const auto last = static_cast<std::size_t>(columns - 1);
  std::uint32_t line[kBlockRows];
  for (int lane = 0; lane < kBlockRows; ++lane) {
    line[lane] = load_unaligned<std::uint16_t>(rows.at[lane] + last * sizeof(std::uint16_t));
  }
  std::memcpy(to + last * kBlockRows * sizeof(std::uint16_t), line, sizeof(line));
}

// Packs scales or biases: one line per group.
void pack_scales(const RowPlaces& rows, const PackedMatrix& matrix, std::byte* to) {
  if (scale_bytes(matrix.scale_kind) == 4) {
    transpose<std::uint32_t>(rows, matrix.groups(), to, matrix.group_bytes());
  } else {
    transpose<std::uint16_t>(rows, matrix.groups(), to, matrix.group_bytes());
  }
}

// Packs lines of words. For narrow codes it first builds words as wide as they are read.
void pack_words(const RowPlaces& words, int count, const PackedMatrix& matrix, std::byte* to) {
  constexpr std::size_t kLineBytes = kBlockRows * sizeof(std::uint32_t);
  if (!matrix.is_narrow()) {
    transpose<std::uint32_t>(words, count, to, kLineBytes);
    return;
  }
  std::uint32_t wide[kChunk / 4][kBlockRows];
  transpose<std::uint32_t>(words, count, reinterpret_cast<std::byte*>(wide), kLineBytes);
  narrow_lines(wide, count, matrix.code_bits, to);
}

void pack_group(const RowPlaces& words, const PackedMatrix& matrix, std::byte* to) {
  pack_words(words, matrix.group * matrix.field_bits() / 32, matrix, to);
}

void pack_codes(const BlockRows& rows, const PackedMatrix& matrix, int bits, std::byte* block) {
  const bool as_they_are = bits == 4 || bits == 8;
  WideRows wide;
  std::byte* to = block;
  for (int k = 0; k < matrix.columns; k += kChunk) {
    const int columns = std::min(kChunk, matrix.columns - k);
    RowPlaces words = rows.weight.moved(static_cast<std::size_t>(k) * bits / 8);
    if (!as_they_are) {
      for (int lane = 0; lane < kBlockRows; ++lane) {
        widen_codes(words.at[lane], bits, columns, wide.words[lane]);
      }
      words = wide.places();
    }
    for (int i = 0; i < columns; i += matrix.group) {
      pack_group(words, matrix, to);
      words = words.moved(static_cast<std::size_t>(matrix.group) * matrix.field_bits() / 8);
      to += matrix.group_bytes();
    }
  }
  std::byte* scales = block + matrix.group_bytes() - matrix.term_bytes();
  pack_scales(rows.scales, matrix, scales);
  pack_scales(rows.biases, matrix, scales + kBlockRows * scale_bytes(matrix.scale_kind));
}

// Packs codes of small floats, with their scales as bf16, which holds them exactly.
void pack_small_codes(
    const BlockRows& rows, const PackedMatrix& matrix, const WeightFormat& format, std::byte* to
) {
  for (int g = 0; g < matrix.groups(); ++g) {
    const std::size_t offset = static_cast<std::size_t>(g) * matrix.group * format.bits / 8;
    const RowPlaces words = rows.weight.moved(offset);
    pack_group(words, matrix, to);
    std::uint16_t scales[kBlockRows];
    for (int lane = 0; lane < kBlockRows; ++lane) {
      scales[lane] = bf16_of(group_scale(format, words.at[lane], rows.scales.at[lane][g]));
    }
    std::memcpy(to + matrix.read_word_bytes(), scales, sizeof(scales));
    to += matrix.group_bytes();
  }
}

// Asks for the bytes behind the next `bytes` of each row: sixteen rows are more streams than the
// processor guesses.
void ask_for(const RowPlaces& rows, int bytes) {
  constexpr int kCacheLine = 64;
  for (const std::byte* row : rows.at) {
    for (int at = 0; at < bytes; at += kCacheLine) {
      __builtin_prefetch(row + bytes + at);
    }
  }
}

// Packs blocks of a file.
void pack_blocks(
    const RowPlaces& rows, const PackedMatrix& matrix, const WeightFormat& format, std::byte* to
) {
  const BlockKind kind = block_kind(format.kind);
  const BlockFormat block = block_format(kind);
  WideRows wide;
  RowPlaces blocks = rows;
  for (int k = 0; k < matrix.columns; k += block.columns) {
    if (k % kSuperColumns == 0) {
      ask_for(blocks, kSuperColumns / block.columns * block.bytes);
    }
    for (int lane = 0; lane < kBlockRows; ++lane) {
      read_block_codes(kind, blocks.at[lane], wide.words[lane]);
    }
    const int words = block.columns * matrix.field_bits() / 32;
    pack_words(wide.places(), words, matrix, to);
    to += matrix.word_bytes() * static_cast<std::size_t>(block.columns / matrix.group);
    pack_block_terms(kind, blocks, to);
    to += matrix.in_super_blocks() ? matrix.super_term_bytes() : matrix.term_bytes();
    blocks = blocks.moved(static_cast<std::size_t>(block.bytes));
  }
}

void pack_block(
    const BlockRows& rows, const PackedMatrix& matrix, const WeightFormat& format, std::byte* block
) {
  if (matrix.order == PackedOrder::kTileOrder) {
    pack_tiled_block(rows, matrix, format, block);
    return;
  }
  if (is_block(format.kind)) {
    return pack_blocks(rows.weight, matrix, format, block);
  }
  switch (format.kind) {
    case WeightKind::kFloat32:
      return pack_values<std::uint32_t>(rows.weight, matrix.columns, block);
    case WeightKind::kFloat16:
      return pack_values<std::uint16_t>(rows.weight, matrix.columns, block);
    case WeightKind::kBFloat16:
      return pack_pairs(rows.weight, matrix.columns, block);
    case WeightKind::kAffine:
      return pack_codes(rows, matrix, format.bits, block);
    default:
      return pack_small_codes(rows, matrix, format, block);
  }
}

PackedKind packed_kind(const WeightFormat& format) {
  if (is_block(format.kind)) {
    const bool has_bytes = format.bits > 4 || block_format(block_kind(format.kind)).has_table;
    return has_bytes ? PackedKind::kByte : PackedKind::kNibble;
  }
  switch (format.kind) {
    case WeightKind::kFloat32:
      return PackedKind::kFloat32;
    case WeightKind::kFloat16:
      return PackedKind::kFloat16;
    case WeightKind::kAffine:
      return format.bits <= 4 ? PackedKind::kNibble : PackedKind::kByte;
    case WeightKind::kMxfp4:
    case WeightKind::kNvfp4:
      return PackedKind::kE2m1;
    case WeightKind::kMxfp8:
      return PackedKind::kE4m3;
    default:
      return PackedKind::kBFloat16;
  }
}

void set_block_codes(const BlockFormat& block, int bits, PackedMatrix& matrix) {
  matrix.largest_code = block.has_table ? kTableCodes[15] : (1 << bits) - 1;
  matrix.zero = block.zero;
  matrix.terms = block.terms;
  if (!block.is_super()) {
    matrix.scale_kind = ScaleKind::kFloat16;
  }
}

}  // namespace

PackedMatrix packed_layout(
    int rows, int columns, const WeightFormat& format, DType scales, const PackedOrders& orders
) {
  PackedMatrix matrix;
  matrix.kind = packed_kind(format);
  matrix.rows = rows;
  matrix.columns = columns;
  matrix.order = orders.of(matrix.kind);
  if (!matrix.has_groups()) {
    return matrix;
  }
  matrix.group = format.group_size;
  matrix.code_bits =
      matrix.order == PackedOrder::kInterleavedNr16 ? format.bits : matrix.field_bits();
  if (matrix.has_small_floats()) {
    matrix.scale_kind = ScaleKind::kBFloat16;
    matrix.terms = TermKind::kScale;
  } else if (is_block(format.kind)) {
    set_block_codes(block_format(block_kind(format.kind)), format.bits, matrix);
  } else {
    matrix.largest_code = (1 << format.bits) - 1;
    matrix.scale_kind = scales == DType::kBFloat16  ? ScaleKind::kBFloat16
                        : scales == DType::kFloat16 ? ScaleKind::kFloat16
                                                    : ScaleKind::kFloat32;
  }
  return matrix;
}

bool fits_in_place(const std::vector<WeightTensors>& parts, const PackedMatrix& matrix) {
  return matrix.columns % kStepColumns == 0 &&
         std::ranges::all_of(parts, [](const WeightTensors& part) {
           return part.weight.dtype == DType::kBFloat16 && part.weight.shape[0] % kBlockRows == 0;
         });
}

std::vector<const std::byte*> find_blocks(const std::vector<WeightTensors>& parts) {
  std::vector<const std::byte*> blocks;
  for (const WeightTensors& part : parts) {
    const std::size_t block_bytes = kBlockRows * row_bytes(part.weight);
    for (std::size_t at = 0; at < part.weight.nbytes(); at += block_bytes) {
      blocks.push_back(part.weight.data.get() + at);
    }
  }
  return blocks;
}

void pack_rows(
    const std::vector<WeightTensors>& parts,
    const WeightFormat& format,
    const PackedMatrix& matrix,
    std::byte* to
) {
  pack_row_blocks(parts, format, matrix, 0, matrix.blocks(), to);
}

void pack_row_blocks(
    const std::vector<WeightTensors>& parts,
    const WeightFormat& format,
    const PackedMatrix& matrix,
    int first,
    int count,
    std::byte* to
) {
  const Source source(parts, matrix.rows);
  const std::size_t block_bytes = matrix.block_bytes();
  thread_pool().run(count, [&](int tile) {
    const int block = first + tile;
    std::byte* at = to + static_cast<std::size_t>(block) * block_bytes;
    pack_block(source.block(block), matrix, format, at);
  });
}

}  // namespace saker::kernels
