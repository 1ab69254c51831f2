// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/cpu/kv_codes.h"

#include "saker/kernels/cpu/bf16.h"
#include "saker/kernels/cpu/lanes.h"
#include "saker/kernels/kv_block.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace saker::kernels {
namespace {

constexpr int kMostGroup = 64;
constexpr int kFloatLanes = 8;  // Enough for compilers to see vectors.

struct Range {
  float low;
  float high;
};

// NaN is skipped. The order of comparisons does not change the result.
Range range_of(const float* values, int count) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  float low[kFloatLanes];
  float high[kFloatLanes];
  std::fill_n(low, kFloatLanes, kInfinity);
  std::fill_n(high, kFloatLanes, -kInfinity);
  for (int i = 0; i < count; i += kFloatLanes) {
    for (int lane = 0; lane < kFloatLanes; ++lane) {
      const float value = values[i + lane];
      low[lane] = value < low[lane] ? value : low[lane];
      high[lane] = high[lane] < value ? value : high[lane];
    }
  }
  return {*std::min_element(low, low + kFloatLanes), *std::max_element(high, high + kFloatLanes)};
}

// The integer nearest to a value of 0 to 255, ties to even.
std::uint8_t nearest(float value) {
  constexpr float kShift = 0x1.8p23F;  // Its last bit counts ones.
  return static_cast<std::uint8_t>(std::bit_cast<std::uint32_t>(value + kShift));
}

// Where code number n of a word begins, as code_block.h has it.
int code_shift(int bits, int n) {
  return bits * (n / 2) + 16 * (n % 2);
}

// Codes of elements [first, first + count) of one key: whole words.
void write_key_codes(
    const CodeBlock& block, std::byte* at, int slot, int first, int count, const std::uint8_t* codes
) {
  const int in_word = block.codes_per_word();
  auto* word = reinterpret_cast<std::uint32_t*>(at) + first / in_word * kPageRows + slot;
  for (int d = 0; d < count; d += in_word, word += kPageRows) {
    *word = 0;
    for (int n = 0; n < std::min(in_word, count - d); ++n) {
      *word |= std::uint32_t{codes[d + n]} << code_shift(block.bits, n);
    }
  }
}

// The same of one value: its part of each word.
void write_value_codes(
    const CodeBlock& block, std::byte* at, int slot, int first, int count, const std::uint8_t* codes
) {
  const int in_word = block.codes_per_word();
  const int shift = code_shift(block.bits, slot % in_word);
  const std::uint32_t others = ~(((1U << block.bits) - 1U) << shift);
  const int chunk = kPageRows / in_word * kLanes;  // Words.
  auto* words = reinterpret_cast<std::uint32_t*>(at) + slot / in_word * kLanes;
  for (int d = first; d < first + count; d += kLanes, codes += kLanes) {
    std::uint32_t* to = words + static_cast<std::ptrdiff_t>(d / kLanes) * chunk;
    for (int lane = 0; lane < std::min(kLanes, first + count - d); ++lane) {
      to[lane] = (to[lane] & others) | std::uint32_t{codes[lane]} << shift;
    }
  }
}

float read_term(const CodeBlock& block, const std::byte* terms, int slot, int g) {
  const std::size_t index = static_cast<std::size_t>(g) * kPageRows + slot;
  return block.bf16 ? from_bf16(reinterpret_cast<const std::uint16_t*>(terms)[index])
                    : reinterpret_cast<const float*>(terms)[index];
}

void write_term(const CodeBlock& block, std::byte* terms, int slot, int g, float value) {
  const std::size_t index = static_cast<std::size_t>(g) * kPageRows + slot;
  if (block.bf16) {
    reinterpret_cast<std::uint16_t*>(terms)[index] = to_bf16(value);
  } else {
    reinterpret_cast<float*>(terms)[index] = value;
  }
}

}  // namespace

int code_group(int dim) {
  return dim % kMostGroup == 0 ? kMostGroup : kMostGroup / 2;
}

CodeTerms quantize_group(const float* values, int count, int bits, bool bf16, std::uint8_t* codes) {
  constexpr float kLeastScale = 1e-7F;
  alignas(64) float row[kMostGroup];
  for (int i = 0; i < count; ++i) {
    row[i] = bf16 ? from_bf16(to_bf16(values[i])) : values[i];
  }
  // Whole vectors; a value twice changes no range.
  const int padded = (count + kFloatLanes - 1) / kFloatLanes * kFloatLanes;
  std::fill(row + count, row + padded, row[0]);
  const Range range = range_of(row, padded);
  const auto most = static_cast<float>((1 << bits) - 1);
  const bool from_low = std::abs(range.low) > std::abs(range.high);
  const float step = std::max((range.high - range.low) / most, kLeastScale);
  const float edge = from_low ? range.low : range.high;
  CodeTerms terms{from_low ? step : -step, 0.0F};
  // So that 0 is a code.
  if (const float zero = std::rint(edge / terms.scale); zero != 0.0F) {
    terms = {edge / zero, edge};
  }
  alignas(64) std::uint8_t rounded[kMostGroup];
  for (int i = 0; i < padded; ++i) {
    const float code = (row[i] - terms.bias) / terms.scale;
    const float at_least = code > 0.0F ? code : 0.0F;
    rounded[i] = nearest(at_least < most ? at_least : most);
  }
  std::copy_n(rounded, count, codes);
  if (bf16) {
    terms = {from_bf16(to_bf16(terms.scale)), from_bf16(to_bf16(terms.bias))};
  }
  return terms;
}

void write_group(
    const CodeBlock& block, CodeSide side, std::byte* at, int slot, int g, const GroupCodes& group
) {
  const auto write = side == CodeSide::kKeys ? write_key_codes : write_value_codes;
  write(block, at, slot, g * block.group, block.group_dim(g), group.codes);
  std::byte* scales = at + block.code_bytes;
  write_term(block, scales, slot, g, group.terms.scale);
  write_term(block, scales + block.term_bytes, slot, g, group.terms.bias);
}

void write_codes(const CodeBlock& block, CodeSide side, std::byte* at, int slot, const float* row) {
  std::uint8_t codes[kMostGroup];
  for (int g = 0; g < block.groups; ++g) {
    const float* values = row + static_cast<std::ptrdiff_t>(g) * block.group;
    const CodeTerms terms =
        quantize_group(values, block.group_dim(g), block.bits, block.bf16, codes);
    write_group(block, side, at, slot, g, {codes, terms});
  }
}

std::uint8_t read_code(
    const CodeBlock& block, CodeSide side, const std::byte* at, int slot, int d
) {
  const int in_word = block.codes_per_word();
  const bool keys = side == CodeSide::kKeys;
  const int values_word =
      (d / kLanes * (kPageRows / in_word) + slot / in_word) * kLanes + d % kLanes;
  const int word = keys ? d / in_word * kPageRows + slot : values_word;
  const int shift = code_shift(block.bits, (keys ? d : slot) % in_word);
  const std::uint32_t codes = reinterpret_cast<const std::uint32_t*>(at)[word];
  return static_cast<std::uint8_t>(codes >> shift & ((1U << block.bits) - 1U));
}

CodeTerms read_terms(const CodeBlock& block, const std::byte* at, int slot, int g) {
  const std::byte* scales = at + block.code_bytes;
  return {
      read_term(block, scales, slot, g),
      read_term(block, scales + block.term_bytes, slot, g),
  };
}

float read_element(const CodeBlock& block, CodeSide side, const std::byte* at, int slot, int d) {
  const CodeTerms terms = read_terms(block, at, slot, d / block.group);
  return terms.scale * static_cast<float>(read_code(block, side, at, slot, d)) + terms.bias;
}

void copy_code_slots(
    const CodeBlock& block, CodeSide side, const std::byte* from, std::byte* to, int slots
) {
  constexpr std::size_t kWord = 4;
  const bool keys = side == CodeSide::kKeys;
  const int codes = block.codes_per_word();
  // A line of words has all slots: one a word, or `codes` of them in each of 16 lanes.
  const std::size_t line = keys ? kPageRows * kWord : kPageRows / codes * kLanes * kWord;
  const int whole = keys ? slots : slots / codes;
  const std::size_t whole_bytes = static_cast<std::size_t>(whole) * (keys ? 1 : kLanes) * kWord;
  std::uint32_t mask = 0;  // Of a word that also has other slots.
  for (int n = 0; !keys && n < slots % codes; ++n) {
    mask |= ((1U << block.bits) - 1U) << code_shift(block.bits, n);
  }
  for (std::size_t at = 0; at < block.code_bytes; at += line) {
    std::memcpy(to + at, from + at, whole_bytes);
    for (int lane = 0; mask != 0 && lane < kLanes; ++lane) {
      const std::size_t word_at = at + whole_bytes + lane * kWord;
      std::uint32_t ours = 0;
      std::uint32_t theirs = 0;
      std::memcpy(&ours, from + word_at, kWord);
      std::memcpy(&theirs, to + word_at, kWord);
      theirs = (theirs & ~mask) | (ours & mask);
      std::memcpy(to + word_at, &theirs, kWord);
    }
  }
  const std::size_t term = block.bf16 ? 2 : 4;
  for (std::size_t at = block.code_bytes; at < block.bytes(); at += kPageRows * term) {
    std::memcpy(to + at, from + at, static_cast<std::size_t>(slots) * term);
  }
}

}  // namespace saker::kernels
