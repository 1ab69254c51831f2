// SPDX-License-Identifier: Apache-2.0
#include "saker/load/gguf/gguf_coded_block.h"

#include "saker/kernels/layout/packed_kinds.h"
#include "saker/load/gguf/gguf_grids.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <span>

namespace saker::load::gguf {
namespace {

constexpr std::array<std::int8_t, 16> kDoubledE2m1 = {
    0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12
};

// The value that a nibble of IQ4_NL and IQ4_XS names.
std::int8_t iq4_value(unsigned name) {
  return static_cast<std::int8_t>(kernels::kTableCodes[name] - 128);
}

template <typename Word>
Word word_at(const std::byte* at) {
  Word word;
  std::memcpy(&word, at, sizeof(word));
  return word;
}

// Sets the scales of a block: the float16 at `half` times `unit` times each integer.
void set_scales(const std::byte* half, float unit, CodedBlock& to) {
  to.factor = half;
  const float factor = half_at(half) * unit;
  for (std::size_t g = 0; g < to.scales.size(); ++g) {
    to.scales[g] = factor * static_cast<float>(to.integers[g]);
  }
}

// 128 columns share 32 bytes, two bits each.
unsigned two_bits(const std::byte* bytes, std::size_t column) {
  const unsigned byte = byte_at(bytes + column / 128 * 32 + column % 32);
  return byte >> 2 * (column / 32 % 4) & 3U;
}

// Four bits of every byte: even numbers in the low half.
unsigned nibble(const std::byte* bytes, std::size_t index) {
  return byte_at(bytes + index / 2) >> index % 2 * 4 & 15U;
}

void read_q2k(const std::byte* block, CodedBlock& to) {
  const float minimum = half_at(block + 82);
  for (std::size_t g = 0; g < to.scales.size(); ++g) {
    to.integers[g] = static_cast<std::int8_t>(nibble(block, 2 * g));
    to.biases[g] = -(minimum * static_cast<float>(nibble(block, 2 * g + 1)));
  }
  for (std::size_t i = 0; i < kMostCodes; ++i) {
    to.codes[i] = static_cast<std::int8_t>(two_bits(block + 16, i));
  }
  set_scales(block + 80, 1.0F, to);
}

void read_q3k(const std::byte* block, CodedBlock& to) {
  const std::byte* scales = block + 96;
  for (std::size_t g = 0; g < to.scales.size(); ++g) {
    const unsigned low = byte_at(scales + g % 8) >> g / 8 * 4 & 15U;
    const unsigned high = byte_at(scales + 8 + g % 4) >> g / 4 * 2 & 3U;
    to.integers[g] = static_cast<std::int8_t>(static_cast<int>(low | high << 4U) - 32);
  }
  for (std::size_t i = 0; i < kMostCodes; ++i) {
    const unsigned high = byte_at(block + i % 32) >> i / 32 & 1U;
    const auto low = static_cast<int>(two_bits(block + 32, i));
    to.codes[i] = static_cast<std::int8_t>(low - (high == 0 ? 4 : 0));
  }
  set_scales(block + 108, 1.0F, to);
}

// The byte at `at` holds five ternary digits; digit 0 is the most significant.
std::int8_t ternary_digit(const std::byte* at, unsigned digit) {
  constexpr std::array<unsigned, 5> kPowers = {1, 3, 9, 27, 81};
  const unsigned moved = byte_at(at) * kPowers[digit] & 255U;
  return static_cast<std::int8_t>(static_cast<int>(moved * 3 >> 8U) - 1);
}

void read_tq1(const std::byte* block, CodedBlock& to) {
  to.integers.fill(1);
  for (std::size_t i = 0; i < 160; ++i) {
    to.codes[i] = ternary_digit(block + i % 32, static_cast<unsigned>(i / 32));
  }
  for (std::size_t i = 0; i < 80; ++i) {
    to.codes[160 + i] = ternary_digit(block + 32 + i % 16, static_cast<unsigned>(i / 16));
  }
  for (std::size_t i = 0; i < 16; ++i) {
    to.codes[240 + i] = ternary_digit(block + 48 + i % 4, static_cast<unsigned>(i / 4));
  }
  set_scales(block + 52, 1.0F, to);
}

void read_tq2(const std::byte* block, CodedBlock& to) {
  to.integers.fill(1);
  for (std::size_t i = 0; i < kMostCodes; ++i) {
    to.codes[i] = static_cast<std::int8_t>(static_cast<int>(two_bits(block, i)) - 1);
  }
  set_scales(block + 64, 1.0F, to);
}

// Eight codes: a row of a grid, bit i of `signs` makes value i negative.
void put_eight(std::span<const std::int8_t> values, unsigned signs, std::int8_t* to) {
  for (unsigned i = 0; i < 8; ++i) {
    const std::int8_t value = values[i];
    to[i] = static_cast<std::int8_t>((signs >> i & 1U) != 0 ? -value : value);
  }
}

// The eighth sign makes the number of negative ones even.
unsigned eight_signs(unsigned seven) {
  return seven | (static_cast<unsigned>(std::popcount(seven)) & 1U) << 7U;
}

std::span<const std::int8_t> row_of(Grid grid, std::size_t row) {
  return grid_values(grid).subspan(8 * row, 8);
}

// Rows of four values in pairs.
std::array<std::int8_t, 8> rows_of_four(Grid grid, std::size_t first, std::size_t second) {
  std::array<std::int8_t, 8> values;
  std::ranges::copy(grid_values(grid).subspan(4 * first, 4), values.begin());
  std::ranges::copy(grid_values(grid).subspan(4 * second, 4), values.begin() + 4);
  return values;
}

// Twice the scale's number, plus one.
std::int8_t odd_scale(unsigned number) {
  return static_cast<std::int8_t>(2 * number + 1);
}

void read_iq2xxs(const std::byte* block, CodedBlock& to) {
  for (std::size_t g = 0; g < 8; ++g) {
    const std::byte* at = block + 2 + 8 * g;
    const auto word = word_at<std::uint32_t>(at + 4);
    to.integers[2 * g] = to.integers[2 * g + 1] = odd_scale(word >> 28U);
    for (std::size_t k = 0; k < 4; ++k) {
      const unsigned signs = eight_signs(word >> 7 * k & 127U);
      put_eight(row_of(Grid::kIq2Xxs, byte_at(at + k)), signs, &to.codes[32 * g + 8 * k]);
    }
  }
  set_scales(block, 0.125F, to);
}

void read_iq2xs(const std::byte* block, CodedBlock& to) {
  for (std::size_t k = 0; k < 32; ++k) {
    const unsigned word = word_at<std::uint16_t>(block + 2 + 2 * k);
    put_eight(row_of(Grid::kIq2Xs, word & 511U), eight_signs(word >> 9U), &to.codes[8 * k]);
  }
  for (std::size_t g = 0; g < to.scales.size(); ++g) {
    to.integers[g] = odd_scale(nibble(block + 66, g));
  }
  set_scales(block, 0.125F, to);
}

void read_iq2s(const std::byte* block, CodedBlock& to) {
  for (std::size_t k = 0; k < 32; ++k) {
    const unsigned high = byte_at(block + 66 + k / 4) >> 2 * (k % 4) & 3U;
    const unsigned row = byte_at(block + 2 + k) | high << 8U;
    put_eight(row_of(Grid::kIq2S, row), byte_at(block + 34 + k), &to.codes[8 * k]);
  }
  for (std::size_t g = 0; g < to.scales.size(); ++g) {
    to.integers[g] = odd_scale(nibble(block + 74, g));
  }
  set_scales(block, 0.125F, to);
}

void read_iq3xxs(const std::byte* block, CodedBlock& to) {
  for (std::size_t g = 0; g < 8; ++g) {
    const auto word = word_at<std::uint32_t>(block + 66 + 4 * g);
    to.integers[2 * g] = to.integers[2 * g + 1] = odd_scale(word >> 28U);
    for (std::size_t k = 0; k < 4; ++k) {
      const std::byte* rows = block + 2 + 8 * g + 2 * k;
      const auto values = rows_of_four(Grid::kIq3Xxs, byte_at(rows), byte_at(rows + 1));
      put_eight(values, eight_signs(word >> 7 * k & 127U), &to.codes[32 * g + 8 * k]);
    }
  }
  set_scales(block, 0.25F, to);
}

void read_iq3s(const std::byte* block, CodedBlock& to) {
  for (std::size_t k = 0; k < 32; ++k) {
    const auto row = [&](std::size_t at) {
      const unsigned high = byte_at(block + 66 + at / 8) >> at % 8 & 1U;
      return byte_at(block + 2 + at) | high << 8U;
    };
    const auto values = rows_of_four(Grid::kIq3S, row(2 * k), row(2 * k + 1));
    put_eight(values, byte_at(block + 74 + k), &to.codes[8 * k]);
  }
  for (std::size_t g = 0; g < to.scales.size(); ++g) {
    to.integers[g] = odd_scale(nibble(block + 106, g / 2));
  }
  set_scales(block, 1.0F, to);
}

// Eight codes of eighths: a ternary row, moved by an eighth up or down.
void put_eighths(unsigned row, bool down, std::int8_t* to) {
  const auto values = row_of(Grid::kIq1, row);
  for (std::size_t i = 0; i < 8; ++i) {
    to[i] = static_cast<std::int8_t>(8 * values[i] + (down ? -1 : 1));
  }
}

void read_iq1s(const std::byte* block, CodedBlock& to) {
  for (std::size_t g = 0; g < 8; ++g) {
    const unsigned word = word_at<std::uint16_t>(block + 34 + 2 * g);
    to.integers[2 * g] = to.integers[2 * g + 1] = odd_scale(word >> 12U & 7U);
    for (std::size_t k = 0; k < 4; ++k) {
      const unsigned row = byte_at(block + 2 + 4 * g + k) | (word >> 3 * k & 7U) << 8U;
      put_eighths(row, (word & 0x8000U) != 0, &to.codes[32 * g + 8 * k]);
    }
  }
  set_scales(block, 0.125F, to);
}

void read_iq1m(const std::byte* block, CodedBlock& to) {
  std::uint16_t half = 0;
  for (std::size_t k = 0; k < 4; ++k) {
    const unsigned word = word_at<std::uint16_t>(block + 48 + 2 * k);
    half = static_cast<std::uint16_t>(half | word >> 12U << 4 * k);
    for (std::size_t g = 0; g < 4; ++g) {
      to.integers[4 * k + g] = odd_scale(word >> 3 * g & 7U);
    }
  }
  for (std::size_t k = 0; k < 32; ++k) {
    const unsigned high = nibble(block + 32, k);
    put_eighths(byte_at(block + k) | (high & 7U) << 8U, (high & 8U) != 0, &to.codes[8 * k]);
  }
  set_scales(reinterpret_cast<const std::byte*>(&half), 0.125F, to);
  to.factor = nullptr;
}

void read_iq4nl(const std::byte* block, CodedBlock& to) {
  to.integers.fill(1);
  for (std::size_t i = 0; i < 32; ++i) {
    to.codes[i] = iq4_value(byte_at(block + 2 + i % 16) >> i / 16 * 4 & 15U);
  }
  set_scales(block, 1.0F, to);
}

void read_iq4xs(const std::byte* block, CodedBlock& to) {
  const unsigned high = word_at<std::uint16_t>(block + 2);
  for (std::size_t g = 0; g < 8; ++g) {
    const unsigned scale = nibble(block + 4, g) | (high >> 2 * g & 3U) << 4U;
    to.integers[2 * g] = to.integers[2 * g + 1] =
        static_cast<std::int8_t>(static_cast<int>(scale) - 32);
    for (std::size_t i = 0; i < 32; ++i) {
      const unsigned pair = byte_at(block + 8 + 16 * g + i % 16);
      to.codes[32 * g + i] = iq4_value(pair >> i / 16 * 4 & 15U);
    }
  }
  set_scales(block, 1.0F, to);
}

void read_mxfp4(const std::byte* block, CodedBlock& to) {
  to.factor = nullptr;
  const float scale = std::ldexp(1.0F, static_cast<int>(byte_at(block)) - 128);
  to.scales[0] = to.scales[1] = scale;
  for (std::size_t i = 0; i < 32; ++i) {
    to.codes[i] = kDoubledE2m1[byte_at(block + 1 + i % 16) >> i / 16 * 4 & 15U];
  }
}

// Half of an unsigned E4M3; its last code stands for zero.
float half_of_e4m3(unsigned code) {
  const auto mantissa = static_cast<float>(code & 7U);
  const auto exponent = static_cast<int>(code >> 3U & 15U);
  if (code == 0x7fU) {
    return 0.0F;
  }
  return exponent == 0 ? std::ldexp(mantissa, -10) : std::ldexp(8.0F + mantissa, exponent - 11);
}

void read_nvfp4(const std::byte* block, CodedBlock& to) {
  to.factor = nullptr;
  for (std::size_t g = 0; g < 4; ++g) {
    to.scales[g] = half_of_e4m3(byte_at(block + g));
    for (std::size_t i = 0; i < 16; ++i) {
      const unsigned pair = byte_at(block + 4 + 8 * g + i % 8);
      to.codes[16 * g + i] = kDoubledE2m1[pair >> i / 8 * 4 & 15U];
    }
  }
}

using Reader = void (*)(const std::byte* block, CodedBlock& to);

Reader reader_of(TensorType type) {
  switch (type) {
    case TensorType::kQ2K:
      return read_q2k;
    case TensorType::kQ3K:
      return read_q3k;
    case TensorType::kTq10:
      return read_tq1;
    case TensorType::kTq20:
      return read_tq2;
    case TensorType::kIq2Xxs:
      return read_iq2xxs;
    case TensorType::kIq2Xs:
      return read_iq2xs;
    case TensorType::kIq2S:
      return read_iq2s;
    case TensorType::kIq3Xxs:
      return read_iq3xxs;
    case TensorType::kIq3S:
      return read_iq3s;
    case TensorType::kIq1S:
      return read_iq1s;
    case TensorType::kIq1M:
      return read_iq1m;
    case TensorType::kIq4Nl:
      return read_iq4nl;
    case TensorType::kIq4Xs:
      return read_iq4xs;
    case TensorType::kMxfp4:
      return read_mxfp4;
    case TensorType::kNvfp4:
      return read_nvfp4;
    default:
      return nullptr;
  }
}

}  // namespace

bool is_coded(TensorType type) {
  return reader_of(type) != nullptr;
}

void read_coded_block(TensorType type, const std::byte* block, CodedBlock& to) {
  to.biases.fill(0.0F);
  reader_of(type)(block, to);
}

}  // namespace saker::load::gguf
