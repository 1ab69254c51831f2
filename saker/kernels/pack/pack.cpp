// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/pack/pack.h"

#include "saker/kernels/cpu/thread_pool.h"
#include "saker/kernels/pack/codes.h"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace saker::kernels {
namespace {

// One row of the checkpoint.
struct SourceRow {
  const std::byte* weight = nullptr;
  const std::byte* scales = nullptr;
  const std::byte* biases = nullptr;
};

const std::byte* row_of(const std::optional<Tensor>& tensor, std::int64_t row) {
  if (!tensor) {
    return nullptr;
  }
  const auto bytes = static_cast<std::int64_t>(dtype_size(tensor->dtype)) * tensor->shape[1];
  return tensor->data.get() + row * bytes;
}

SourceRow source_row(const std::vector<WeightTensors>& parts, std::int64_t row) {
  for (const WeightTensors& part : parts) {
    if (row < part.weight.shape[0]) {
      return {row_of(part.weight, row), row_of(part.scales, row), row_of(part.biases, row)};
    }
    row -= part.weight.shape[0];
  }
  assert(false);
  return {};
}

// Writes `value` as element `index` of the lane: lanes are 16 apart.
template <typename Value>
void put(std::byte* block, std::size_t index, int lane, Value value) {
  std::memcpy(block + (index * kBlockRows + lane) * sizeof(Value), &value, sizeof(Value));
}

template <typename Value>
void pack_values(const std::byte* row, int count, int lane, std::byte* block) {
  for (int i = 0; i < count; ++i) {
    put(block, i, lane, load_unaligned<Value>(row + i * sizeof(Value)));
  }
}

void pack_pairs(const std::byte* row, int columns, int lane, std::byte* block) {
  pack_values<std::uint32_t>(row, columns / 2, lane, block);
  if (columns % 2 != 0) {
    const std::uint32_t last = load_unaligned<std::uint16_t>(row + (columns - 1) * 2);
    put(block, columns / 2, lane, last);
  }
}

// Codes of other widths take the layout of the next wider one.
std::uint32_t wide_word(const std::byte* row, int k, unsigned bits, int codes) {
  std::uint32_t word = 0;
  for (int i = 0; i < codes; ++i) {
    word |= code_at(row, k + i, bits) << (i * (32 / codes));
  }
  return word;
}

void pack_codes(
    const SourceRow& row, const PackedMatrix& matrix, unsigned bits, int lane, std::byte* block
) {
  const bool nibbles = matrix.kind == PackedKind::kNibble;
  const int codes = nibbles ? 8 : 4;
  const int words = matrix.group / codes;
  const std::size_t scale_size = scale_bytes(matrix.scale_kind);
  for (int g = 0; g < matrix.groups(); ++g) {
    const int k = g * matrix.group;
    const std::byte* from = row.weight + static_cast<std::size_t>(k) * bits / 8;
    if (bits == 4 || bits == 8) {
      pack_values<std::uint32_t>(from, words, lane, block);
    } else {
      for (int i = 0; i < words; ++i) {
        put(block, i, lane, wide_word(row.weight, k + i * codes, bits, codes));
      }
    }
    std::byte* scales = block + matrix.group_word_bytes();
    std::memcpy(scales + lane * scale_size, row.scales + g * scale_size, scale_size);
    std::memcpy(scales + (kBlockRows + lane) * scale_size, row.biases + g * scale_size, scale_size);
    block += matrix.group_bytes();
  }
}

// Values of few bits times a scale of few bits: exact in bf16, whose upper half of a float32 is
// taken.
void pack_small_floats(
    const SourceRow& row,
    const PackedMatrix& matrix,
    const WeightFormat& format,
    int lane,
    std::byte* block
) {
  const bool e4m3_scales = format.kind == WeightKind::kNvfp4;
  std::uint32_t pair = 0;
  for (int k = 0; k < matrix.columns; ++k) {
    const auto scale_code = std::to_integer<unsigned>(row.scales[k / format.group_size]);
    const float scale = e4m3_scales ? e4m3_value(scale_code) : e8m0_value(scale_code);
    const unsigned code = code_at(row.weight, k, static_cast<unsigned>(format.bits));
    const float value = (format.bits == 4 ? e2m1_value(code) : e4m3_value(code)) * scale;
    const std::uint32_t upper = std::bit_cast<std::uint32_t>(value) >> 16;
    if (k % 2 == 0) {
      pair = upper;
    } else {
      put(block, k / 2, lane, pair | upper << 16);
    }
  }
}

void pack_row(
    const SourceRow& row,
    const PackedMatrix& matrix,
    const WeightFormat& format,
    int lane,
    std::byte* block
) {
  switch (format.kind) {
    case WeightKind::kFloat32:
      return pack_values<std::uint32_t>(row.weight, matrix.columns, lane, block);
    case WeightKind::kFloat16:
      return pack_values<std::uint16_t>(row.weight, matrix.columns, lane, block);
    case WeightKind::kBFloat16:
      return pack_pairs(row.weight, matrix.columns, lane, block);
    case WeightKind::kAffine:
      return pack_codes(row, matrix, static_cast<unsigned>(format.bits), lane, block);
    default:
      return pack_small_floats(row, matrix, format, lane, block);
  }
}

PackedKind packed_kind(const WeightFormat& format) {
  switch (format.kind) {
    case WeightKind::kFloat32:
      return PackedKind::kFloat32;
    case WeightKind::kFloat16:
      return PackedKind::kFloat16;
    case WeightKind::kAffine:
      return format.bits <= 4 ? PackedKind::kNibble : PackedKind::kByte;
    default:
      return PackedKind::kBFloat16;
  }
}

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

void unpack_codes(const PackedMatrix& matrix, const std::byte* block, int lane, float* values) {
  const bool nibbles = matrix.kind == PackedKind::kNibble;
  const int codes = nibbles ? 8 : 4;
  for (int g = 0; g < matrix.groups(); ++g) {
    const std::byte* scales = block + matrix.group_word_bytes();
    const float scale = scale_at(matrix.scale_kind, scales, lane);
    const float bias = scale_at(matrix.scale_kind, scales, kBlockRows + lane);
    for (int i = 0; i < matrix.group; ++i) {
      const auto word = load_unaligned<std::uint32_t>(block + 4 * (i / codes * kBlockRows + lane));
      const std::uint32_t code = word >> (i % codes * (nibbles ? 4 : 8)) & (nibbles ? 0xfU : 0xffU);
      *values++ = scale * static_cast<float>(code) + bias;
    }
    block += matrix.group_bytes();
  }
}

}  // namespace

PackedMatrix packed_layout(int rows, int columns, const WeightFormat& format, DType scales) {
  PackedMatrix matrix;
  matrix.kind = packed_kind(format);
  matrix.rows = rows;
  matrix.columns = columns;
  if (matrix.has_groups()) {
    matrix.group = format.group_size;
    matrix.scale_kind = scales == DType::kBFloat16  ? ScaleKind::kBFloat16
                        : scales == DType::kFloat16 ? ScaleKind::kFloat16
                                                    : ScaleKind::kFloat32;
  }
  return matrix;
}

void pack_rows(
    const std::vector<WeightTensors>& parts,
    const WeightFormat& format,
    const PackedMatrix& matrix,
    std::byte* to
) {
  const std::size_t block_bytes = matrix.block_bytes();
  thread_pool().run(matrix.blocks(), [&](int block) {
    std::byte* at = to + static_cast<std::size_t>(block) * block_bytes;
    const int first = block * kBlockRows;
    const int count = std::min(kBlockRows, matrix.rows - first);
    if (count < kBlockRows) {
      std::memset(at, 0, block_bytes);
    }
    for (int lane = 0; lane < count; ++lane) {
      pack_row(source_row(parts, first + lane), matrix, format, lane, at);
    }
  });
}

void unpack_row(const PackedMatrix& matrix, int row, float* values) {
  const std::byte* block = matrix.block(row / kBlockRows);
  const int lane = row % kBlockRows;
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
