// SPDX-License-Identifier: Apache-2.0
#include "tests/kernels/block_values.h"

#include "saker/kernels/layout/block_format.h"
#include "saker/kernels/packing/codes.h"

#include <cstddef>
#include <cstdint>

namespace saker::kernels {
namespace {

int byte_at(const std::byte* block, int i) {
  return std::to_integer<int>(block[i]);
}

float half_at(const std::byte* block, int i) {
  return f16_value(load_unaligned<std::uint16_t>(block + i));
}

// Column k of 32 in sixteen bytes.
int nibble_at(const std::byte* nibbles, int k) {
  return k < 16 ? byte_at(nibbles, k) & 15 : byte_at(nibbles, k - 16) >> 4;
}

int bit_at(const std::byte* bits, int k) {
  return byte_at(bits, k / 8) >> (k % 8) & 1;
}

float simple_value(BlockKind kind, const std::byte* block, int k) {
  const float d = half_at(block, 0);
  switch (kind) {
    case BlockKind::kQ40:
      return d * static_cast<float>(nibble_at(block + 2, k) - 8);
    case BlockKind::kQ41:
      return d * static_cast<float>(nibble_at(block + 4, k)) + half_at(block, 2);
    case BlockKind::kQ50:
      return d * static_cast<float>(nibble_at(block + 6, k) + 16 * bit_at(block + 2, k) - 16);
    case BlockKind::kQ51:
      return d * static_cast<float>(nibble_at(block + 8, k) + 16 * bit_at(block + 4, k)) +
             half_at(block, 2);
    default:
      return d * static_cast<float>(static_cast<std::int8_t>(byte_at(block, 2 + k)));
  }
}

float k_value(BlockKind kind, const std::byte* block, int k) {
  const bool five = kind == BlockKind::kQ5K;
  const int g = k / 32;
  const std::byte* packed = block + 4;
  int scale = byte_at(packed, g) & 63;
  int minimum = byte_at(packed, g + 4) & 63;
  if (g >= 4) {
    scale = (byte_at(packed, g + 4) & 15) | (byte_at(packed, g - 4) >> 6) << 4;
    minimum = byte_at(packed, g + 4) >> 4 | (byte_at(packed, g) >> 6) << 4;
  }
  const int pair = byte_at(block, (five ? 48 : 16) + g / 2 * 32 + k % 32);
  int code = g % 2 == 0 ? pair & 15 : pair >> 4;
  if (five) {
    code += (byte_at(block, 16 + k % 32) >> g & 1) * 16;
  }
  return half_at(block, 0) * static_cast<float>(scale) * static_cast<float>(code) -
         half_at(block, 2) * static_cast<float>(minimum);
}

float q6k_value(const std::byte* block, int k) {
  const int half = k / 128;
  const int quarter = k % 128 / 32;
  const int low = byte_at(block, half * 64 + quarter % 2 * 32 + k % 32) >> (quarter / 2 * 4) & 15;
  const int high = byte_at(block, 128 + half * 32 + k % 32) >> (2 * quarter) & 3;
  const auto scale = static_cast<std::int8_t>(byte_at(block, 192 + k / 16));
  return half_at(block, 208) * static_cast<float>(scale) * static_cast<float>(low + 16 * high - 32);
}

// Two bits of a code, of 128 columns in 32 bytes.
int two_bits_at(const std::byte* low, int k) {
  return byte_at(low, k / 128 * 32 + k % 32) >> (k % 128 / 32 * 2) & 3;
}

float q2k_value(const std::byte* block, int k) {
  const int terms = byte_at(block, k / 16);
  return half_at(block, 80) * static_cast<float>(terms & 15) *
             static_cast<float>(two_bits_at(block + 16, k)) -
         half_at(block, 82) * static_cast<float>(terms >> 4);
}

float q3k_value(const std::byte* block, int k) {
  const int third = byte_at(block, k % 32) >> (k / 32) & 1;
  const int g = k / 16;
  const int low = g < 8 ? byte_at(block, 96 + g) & 15 : byte_at(block, 88 + g) >> 4;
  const int scale = low + 16 * (byte_at(block, 104 + g % 4) >> (g / 4 * 2) & 3) - 32;
  return half_at(block, 108) * static_cast<float>(scale) *
         static_cast<float>(two_bits_at(block + 32, k) + 4 * third - 4);
}

int iq4_value(const std::byte* nibbles, int k) {
  constexpr int kValues[] = {
      -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113
  };
  return kValues[nibble_at(nibbles, k)];
}

float iq4xs_value(const std::byte* block, int k) {
  const int g = k / 32;
  const int high = byte_at(block, 2 + g / 4) >> (g % 4 * 2) & 3;
  const int scale = (byte_at(block, 4 + g / 2) >> (g % 2 * 4) & 15) + 16 * high - 32;
  return half_at(block, 0) * static_cast<float>(scale) *
         static_cast<float>(iq4_value(block + 8 + 16 * g, k % 32));
}

float block_value(BlockKind kind, const std::byte* block, int k) {
  switch (kind) {
    case BlockKind::kQ4K:
    case BlockKind::kQ5K:
      return k_value(kind, block, k);
    case BlockKind::kQ6K:
      return q6k_value(block, k);
    case BlockKind::kQ2K:
      return q2k_value(block, k);
    case BlockKind::kQ3K:
      return q3k_value(block, k);
    case BlockKind::kIq4Nl:
      return half_at(block, 0) * static_cast<float>(iq4_value(block + 2, k));
    case BlockKind::kIq4Xs:
      return iq4xs_value(block, k);
    default:
      return simple_value(kind, block, k);
  }
}

}  // namespace

std::vector<float> block_values(const Tensor& blocks, BlockKind kind) {
  const BlockFormat format = block_format(kind);
  std::vector<float> values;
  for (std::size_t i = 0; i < blocks.nbytes(); i += static_cast<std::size_t>(format.bytes)) {
    const std::byte* block = blocks.data.get() + i;
    for (int k = 0; k < format.columns; ++k) {
      values.push_back(block_value(kind, block, k));
    }
  }
  return values;
}

}  // namespace saker::kernels
