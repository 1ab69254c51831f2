// SPDX-License-Identifier: Apache-2.0
#include "saker/load/gguf/gguf_types.h"

#include "saker/load/gguf/gguf_coded_block.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace saker::load::gguf {
namespace {

constexpr std::array<TypeFacts, 26> kTypes = {{
    {TensorType::kFloat32, "F32", 1, 4},      {TensorType::kFloat16, "F16", 1, 2},
    {TensorType::kBFloat16, "BF16", 1, 2},    {TensorType::kQ40, "Q4_0", 32, 18},
    {TensorType::kQ41, "Q4_1", 32, 20},       {TensorType::kQ50, "Q5_0", 32, 22},
    {TensorType::kQ51, "Q5_1", 32, 24},       {TensorType::kQ80, "Q8_0", 32, 34},
    {TensorType::kQ4K, "Q4_K", 256, 144},     {TensorType::kQ5K, "Q5_K", 256, 176},
    {TensorType::kQ6K, "Q6_K", 256, 210},     {TensorType::kQ2K, "Q2_K", 256, 84},
    {TensorType::kQ3K, "Q3_K", 256, 110},     {TensorType::kIq4Nl, "IQ4_NL", 32, 18},
    {TensorType::kIq4Xs, "IQ4_XS", 256, 136}, {TensorType::kIq3Xxs, "IQ3_XXS", 256, 98},
    {TensorType::kIq3S, "IQ3_S", 256, 110},   {TensorType::kIq2Xxs, "IQ2_XXS", 256, 66},
    {TensorType::kIq2Xs, "IQ2_XS", 256, 74},  {TensorType::kIq2S, "IQ2_S", 256, 82},
    {TensorType::kIq1S, "IQ1_S", 256, 50},    {TensorType::kIq1M, "IQ1_M", 256, 56},
    {TensorType::kTq10, "TQ1_0", 256, 54},    {TensorType::kTq20, "TQ2_0", 256, 66},
    {TensorType::kMxfp4, "MXFP4", 32, 17},    {TensorType::kNvfp4, "NVFP4", 64, 36},
}};

// All types, also those that we don't read; empty: the number is not in use.
constexpr std::array<std::string_view, 43> kNames = {
    "F32",   "F16",        "Q4_0",       "Q4_1",       "Q4_2",     "Q4_3",     "Q5_0",
    "Q5_1",  "Q8_0",       "Q8_1",       "Q2_K",       "Q3_K",     "Q4_K",     "Q5_K",
    "Q6_K",  "Q8_K",       "IQ2_XXS",    "IQ2_XS",     "IQ3_XXS",  "IQ1_S",    "IQ4_NL",
    "IQ3_S", "IQ2_S",      "IQ4_XS",     "I8",         "I16",      "I32",      "I64",
    "F64",   "IQ1_M",      "BF16",       "Q4_0_4_4",   "Q4_0_4_8", "Q4_0_8_8", "TQ1_0",
    "TQ2_0", "IQ4_NL_4_4", "IQ4_NL_4_8", "IQ4_NL_8_8", "MXFP4",    "NVFP4",    "Q1_0",
    "Q2_0",
};

constexpr std::size_t kGroup = 32;
constexpr std::size_t kSuperBlock = 256;

// 32 weights: w = scale * code + bias.
struct Group {
  std::array<std::uint8_t, kGroup> codes;
  float scale = 0.0F;
  float bias = 0.0F;
};

// Byte i of `low` holds the codes of weights i (low half) and i + 16.
void read_halves(const std::byte* low, Group& group) {
  for (std::size_t i = 0; i < kGroup / 2; ++i) {
    const unsigned pair = byte_at(low + i);
    group.codes[i] = static_cast<std::uint8_t>(pair & 0x0FU);
    group.codes[i + kGroup / 2] = static_cast<std::uint8_t>(pair >> 4U);
  }
}

// Bit i of four bytes is the fifth bit of weight i.
void add_fifth_bits(const std::byte* high, Group& group) {
  for (std::size_t i = 0; i < kGroup; ++i) {
    const unsigned bit = byte_at(high + i / 8) >> (i % 8) & 1U;
    group.codes[i] |= static_cast<std::uint8_t>(bit << 4U);
  }
}

// Reads one of the types with a scale per 32 weights.
void read_simple(TensorType type, const std::byte* at, Group& group) {
  group.scale = half_at(at);
  switch (type) {
    case TensorType::kQ40:
      group.bias = -8.0F * group.scale;
      return read_halves(at + 2, group);
    case TensorType::kQ41:
      group.bias = half_at(at + 2);
      return read_halves(at + 4, group);
    case TensorType::kQ50:
      group.bias = -16.0F * group.scale;
      read_halves(at + 6, group);
      return add_fifth_bits(at + 2, group);
    case TensorType::kQ51:
      group.bias = half_at(at + 2);
      read_halves(at + 8, group);
      return add_fifth_bits(at + 4, group);
    default:  // Signed Q8_0.
      group.bias = -128.0F * group.scale;
      for (std::size_t i = 0; i < kGroup; ++i) {
        group.codes[i] = static_cast<std::uint8_t>(byte_at(at + 2 + i) ^ 0x80U);
      }
  }
}

// The scale and the minimum of group `index`, 6 bits each; the 12 bytes hold 8 pairs.
std::pair<unsigned, unsigned> scale_and_minimum(const std::byte* packed, std::size_t index) {
  if (index < 4) {
    return {byte_at(packed + index) & 63U, byte_at(packed + index + 4) & 63U};
  }
  const unsigned low = byte_at(packed + index + 4);
  const unsigned scale = (low & 0x0FU) | (byte_at(packed + index - 4) >> 6U) << 4U;
  const unsigned minimum = low >> 4U | (byte_at(packed + index) >> 6U) << 4U;
  return {scale, minimum};
}

// Reads group `index` of a block of Q4_K or Q5_K. Two groups share 32 bytes: the first has the low
// halves, the second the high ones.
void read_k(TensorType type, const std::byte* block, std::size_t index, Group& group) {
  const bool five = type == TensorType::kQ5K;
  const auto [scale, minimum] = scale_and_minimum(block + 4, index);
  group.scale = half_at(block) * static_cast<float>(scale);
  group.bias = -(half_at(block + 2) * static_cast<float>(minimum));
  const std::byte* high = block + 16;
  const std::byte* low = (five ? high + 32 : high) + index / 2 * kGroup;
  for (std::size_t i = 0; i < kGroup; ++i) {
    const unsigned pair = byte_at(low + i);
    unsigned code = index % 2 == 0 ? pair & 0x0FU : pair >> 4U;
    if (five) {
      code |= (byte_at(high + i) >> index & 1U) << 4U;
    }
    group.codes[i] = static_cast<std::uint8_t>(code);
  }
}

// What is added to signed codes of a type so that they begin at 0.
int code_offset(TensorType type) {
  return type == TensorType::kIq1S                                ? 9
         : type == TensorType::kTq10 || type == TensorType::kTq20 ? 8
                                                                  : 128;
}

// Group `index` of a block whose sixteens have equal scales in pairs.
void read_coded_group(TensorType type, const CodedBlock& block, std::size_t index, Group& group) {
  const int offset = code_offset(type);
  group.scale = block.scales[2 * index];
  group.bias = group.scale * static_cast<float>(-offset);
  for (std::size_t i = 0; i < kGroup; ++i) {
    group.codes[i] = static_cast<std::uint8_t>(block.codes[kGroup * index + i] + offset);
  }
}

// Calls body(group, number) for each 32 weights. REQUIRES: the type has an affine layout.
template <typename Body>
void for_groups(TensorType type, const std::byte* from, std::size_t count, Body&& body) {
  const TypeFacts& facts = facts_of(type);
  const std::size_t per_block = static_cast<std::size_t>(facts.block) / kGroup;
  const bool coded = is_coded(type);
  CodedBlock coded_block;
  Group group;
  for (std::size_t number = 0; number < count / kGroup; ++number) {
    const std::byte* block = from + number / per_block * facts.block_bytes;
    if (coded) {
      if (number % per_block == 0) {
        read_coded_block(type, block, coded_block);
      }
      read_coded_group(type, coded_block, number % per_block, group);
    } else if (per_block == 1) {
      read_simple(type, block, group);
    } else {
      read_k(type, block, number % per_block, group);
    }
    body(group, number);
  }
}

// Writes 32 codes as a stream of bits, the first one lowest.
void write_codes(const Group& group, unsigned bits, std::byte* to) {
  std::uint64_t stream = 0;
  unsigned held = 0;
  for (const std::uint8_t code : group.codes) {
    stream |= static_cast<std::uint64_t>(code) << held;
    for (held += bits; held >= 8; held -= 8) {
      *to++ = static_cast<std::byte>(stream & 0xFFU);
      stream >>= 8U;
    }
  }
}

// Reads 16 scales of 16 weights each, and codes of 6 bits in two places.
void read_q6(const std::byte* block, float* to) {
  const std::byte* low = block;
  const std::byte* high = block + 128;
  const std::byte* scales = block + 192;
  const float scale = half_at(block + 208);
  for (std::size_t i = 0; i < kSuperBlock; ++i) {
    const std::size_t half = i / 128;
    const std::size_t quarter = i % 128 / 32;
    const std::size_t column = i % 32;
    const unsigned four = byte_at(low + half * 64 + quarter % 2 * 32 + column) >> quarter / 2 * 4;
    const unsigned two = byte_at(high + half * 32 + column) >> quarter * 2;
    const int code = static_cast<int>((four & 0x0FU) | (two & 3U) << 4U) - 32;
    const auto own = static_cast<std::int8_t>(byte_at(scales + i / 16));
    to[i] = scale * static_cast<float>(own) * static_cast<float>(code);
  }
}

void coded_to_floats(TensorType type, const std::byte* from, std::size_t count, float* to) {
  const TypeFacts& facts = facts_of(type);
  const auto width = static_cast<std::size_t>(facts.block);
  CodedBlock block;
  for (std::size_t at = 0; at < count; at += width, from += facts.block_bytes) {
    read_coded_block(type, from, block);
    for (std::size_t i = 0; i < width; ++i) {
      const float product = block.scales[i / kCodedGroup] * static_cast<float>(block.codes[i]);
      to[at + i] = product + block.biases[i / kCodedGroup];
    }
  }
}

}  // namespace

const TypeFacts* find_type(std::uint32_t number) {
  const auto* found = std::ranges::find_if(kTypes, [&](const TypeFacts& facts) {
    return static_cast<std::uint32_t>(facts.type) == number;
  });
  return found != kTypes.end() ? found : nullptr;
}

const TypeFacts& facts_of(TensorType type) {
  const TypeFacts* found = find_type(static_cast<std::uint32_t>(type));
  assert(found != nullptr);
  return *found;
}

std::string type_name(std::uint32_t number) {
  return number < kNames.size() ? std::string(kNames[number]) : fmt::format("type {}", number);
}

std::string supported_types() {
  std::string names;
  for (const TypeFacts& facts : kTypes) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", facts.name);
  }
  return names;
}

std::optional<DType> plain_dtype(TensorType type) {
  switch (type) {
    case TensorType::kFloat32:
      return DType::kFloat32;
    case TensorType::kFloat16:
      return DType::kFloat16;
    case TensorType::kBFloat16:
      return DType::kBFloat16;
    default:
      return std::nullopt;
  }
}

std::optional<AffineLayout> affine_layout(TensorType type) {
  const auto layout = [](int bits, DType scales) {
    return AffineLayout{
        .format = {.kind = kernels::WeightKind::kAffine, .bits = bits, .group_size = kGroup},
        .scales = scales,
    };
  };
  switch (type) {
    case TensorType::kQ40:
    case TensorType::kQ41:
      return layout(4, DType::kFloat16);
    case TensorType::kQ50:
    case TensorType::kQ51:
      return layout(5, DType::kFloat16);
    case TensorType::kQ80:
      return layout(8, DType::kFloat16);
    case TensorType::kQ4K:
      return layout(4, DType::kFloat32);
    case TensorType::kQ5K:
    case TensorType::kIq1S:
      return layout(5, DType::kFloat32);
    case TensorType::kIq4Nl:
      return layout(8, DType::kFloat16);
    case TensorType::kIq4Xs:
    case TensorType::kIq3Xxs:
    case TensorType::kIq2Xxs:
      return layout(8, DType::kFloat32);
    case TensorType::kTq10:
    case TensorType::kTq20:
      return layout(4, DType::kFloat16);
    default:
      return std::nullopt;
  }
}

void to_affine(
    TensorType type, const std::byte* from, std::size_t count, const kernels::QuantizedBytes& to
) {
  const auto layout = affine_layout(type);
  assert(layout.has_value());
  const auto bits = static_cast<unsigned>(layout->format.bits);
  std::vector<float> scales(count / kGroup);
  std::vector<float> biases(count / kGroup);
  for_groups(type, from, count, [&](const Group& group, std::size_t number) {
    write_codes(group, bits, to.codes + number * kGroup * bits / 8);
    scales[number] = group.scale;
    biases[number] = group.bias;
  });
  const auto narrow = kernels::quantize_loops().narrow;
  narrow(scales.data(), layout->scales, scales.size(), to.scales);
  narrow(biases.data(), layout->scales, biases.size(), to.biases);
}

bool fits_affine(TensorType type, const std::byte* from, std::size_t count) {
  constexpr float kLargestHalf = 65504.0F;
  const auto layout = affine_layout(type);
  assert(layout.has_value());
  const float limit = layout->scales == DType::kFloat16 ? kLargestHalf : HUGE_VALF;
  bool fits = true;
  for_groups(type, from, count, [&](const Group& group, std::size_t) {
    fits = fits && std::isfinite(group.scale) && std::isfinite(group.bias) &&
           std::abs(group.bias) <= limit;
  });
  return fits;
}

void to_floats(TensorType type, const std::byte* from, std::size_t count, float* to) {
  if (const auto plain = plain_dtype(type)) {
    kernels::quantize_loops().widen(from, *plain, count, to);
    return;
  }
  if (type == TensorType::kQ6K) {
    const TypeFacts& facts = facts_of(type);
    for (std::size_t block = 0; block < count / kSuperBlock; ++block) {
      read_q6(from + block * facts.block_bytes, to + block * kSuperBlock);
    }
    return;
  }
  if (is_coded(type)) {
    return coded_to_floats(type, from, count, to);
  }
  for_groups(type, from, count, [&](const Group& group, std::size_t number) {
    for (std::size_t i = 0; i < kGroup; ++i) {
      const float product = group.scale * static_cast<float>(group.codes[i]);
      to[number * kGroup + i] = product + group.bias;
    }
  });
}

}  // namespace saker::load::gguf
