// SPDX-License-Identifier: Apache-2.0
// Blocks as products read them: the file's, or blocks of types that products don't read in others.
#include "saker/load/gguf/blocks/gguf_coded_block.h"
#include "saker/load/gguf/blocks/gguf_types.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace saker::load::gguf {
namespace {

using kernels::BlockKind;

// Writes 256 codes from -32 to 31, integers and a factor as a block of Q6_K.
std::byte* write_q6k(const CodedBlock& from, std::byte* to) {
  std::array<std::uint8_t, 128> low{};
  std::array<std::uint8_t, 64> high{};
  for (std::size_t i = 0; i < kMostCodes; ++i) {
    const auto code = static_cast<unsigned>(from.codes[i] + 32);
    const std::size_t half = i / 128;
    const std::size_t quarter = i % 128 / 32;
    const std::size_t column = i % 32;
    low[half * 64 + quarter % 2 * 32 + column] |=
        static_cast<std::uint8_t>((code & 15U) << quarter / 2 * 4);
    high[half * 32 + column] |= static_cast<std::uint8_t>(code >> 4U << quarter * 2);
  }
  std::memcpy(to, low.data(), low.size());
  std::memcpy(to + 128, high.data(), high.size());
  std::memcpy(to + 192, from.integers.data(), from.integers.size());
  std::memcpy(to + 208, from.factor, 2);
  return to + 210;
}

// Writes 256 codes from -8 to 7 as eight blocks of Q4_0 with one factor.
std::byte* write_q40(const CodedBlock& from, std::byte* to) {
  for (std::size_t first = 0; first < kMostCodes; first += 32) {
    std::memcpy(to, from.factor, 2);
    for (std::size_t i = 0; i < 16; ++i) {
      const auto low = static_cast<unsigned>(from.codes[first + i] + 8);
      const auto high = static_cast<unsigned>(from.codes[first + i + 16] + 8);
      to[2 + i] = static_cast<std::byte>(low | high << 4U);
    }
    to += 18;
  }
  return to;
}

}  // namespace

std::optional<BlockKind> block_kind(TensorType type) {
  switch (type) {
    case TensorType::kQ40:
    case TensorType::kTq10:
    case TensorType::kTq20:
      return BlockKind::kQ40;
    case TensorType::kQ41:
      return BlockKind::kQ41;
    case TensorType::kQ50:
      return BlockKind::kQ50;
    case TensorType::kQ51:
      return BlockKind::kQ51;
    case TensorType::kQ80:
      return BlockKind::kQ80;
    case TensorType::kQ4K:
      return BlockKind::kQ4K;
    case TensorType::kQ5K:
      return BlockKind::kQ5K;
    case TensorType::kQ6K:
    case TensorType::kIq3S:
      return BlockKind::kQ6K;
    case TensorType::kQ2K:
      return BlockKind::kQ2K;
    case TensorType::kQ3K:
      return BlockKind::kQ3K;
    case TensorType::kIq4Nl:
      return BlockKind::kIq4Nl;
    case TensorType::kIq4Xs:
      return BlockKind::kIq4Xs;
    default:
      return std::nullopt;
  }
}

bool has_own_blocks(TensorType type) {
  const bool is_other =
      type == TensorType::kIq3S || type == TensorType::kTq10 || type == TensorType::kTq20;
  return block_kind(type) && !is_other;
}

void to_blocks(TensorType type, const std::byte* from, std::size_t count, std::byte* to) {
  const TypeFacts& facts = facts_of(type);
  const std::size_t blocks = count / static_cast<std::size_t>(facts.block);
  if (has_own_blocks(type)) {
    std::memcpy(to, from, blocks * facts.block_bytes);
    return;
  }
  CodedBlock block;
  for (std::size_t i = 0; i < blocks; ++i) {
    read_coded_block(type, from + i * facts.block_bytes, block);
    to = block_kind(type) == BlockKind::kQ6K ? write_q6k(block, to) : write_q40(block, to);
  }
}

std::optional<kernels::WeightFormat> small_float_format(TensorType type) {
  using kernels::WeightFormat;
  using kernels::WeightKind;
  switch (type) {
    case TensorType::kMxfp4:
      return WeightFormat{.kind = WeightKind::kMxfp4, .bits = 4, .group_size = 32};
    case TensorType::kNvfp4:
      return WeightFormat{.kind = WeightKind::kNvfp4, .bits = 4, .group_size = 16};
    default:
      return std::nullopt;
  }
}

void to_small_floats(
    TensorType type, const std::byte* from, std::size_t count, std::byte* codes, std::byte* scales
) {
  // A block: scales, then for each group bytes with its first half of codes in their low bits.
  const TypeFacts& facts = facts_of(type);
  const auto group = static_cast<std::size_t>(small_float_format(type)->group_size);
  const std::size_t groups = static_cast<std::size_t>(facts.block) / group;
  for (std::size_t at = 0; at < count; at += group * groups, from += facts.block_bytes) {
    scales = std::copy_n(from, groups, scales);
    for (std::size_t g = 0; g < groups; ++g) {
      // Two bytes have two codes of the group's first half, and two of the other half.
      const std::byte* pairs = from + groups + g * group / 2;
      const std::size_t half = group / 4;
      for (std::size_t i = 0; i < half; ++i) {
        const std::byte even = pairs[2 * i];
        const std::byte odd = pairs[2 * i + 1];
        codes[i] = (even & std::byte{15}) | odd << 4;
        codes[half + i] = even >> 4 | (odd & std::byte{0xf0});
      }
      codes += 2 * half;
    }
  }
}

bool fits_small_floats(TensorType type, const std::byte* from, std::size_t count) {
  // The largest code is no number in MLX's formats. NVFP4 has no sign here.
  const TypeFacts& facts = facts_of(type);
  const unsigned least = type == TensorType::kNvfp4 ? 0x7fU : 0xffU;
  const std::size_t scales =
      static_cast<std::size_t>(facts.block / small_float_format(type)->group_size);
  for (std::size_t at = 0; at < count; at += static_cast<std::size_t>(facts.block)) {
    const auto is_number = [&](std::byte scale) {
      return std::to_integer<unsigned>(scale) < least;
    };
    if (!std::all_of(from, from + scales, is_number)) {
      return false;
    }
    from += facts.block_bytes;
  }
  return true;
}

}  // namespace saker::load::gguf
