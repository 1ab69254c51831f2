// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/pack/codes.h"
#include "saker/kernels/pack/pack.h"

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
