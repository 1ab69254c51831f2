// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/storage/kv_codes.h"

#include "saker/kernels/cpu/simd/bf16.h"
#include "saker/kernels/layout/kv_block.h"
#include "saker/kernels/layout/lanes.h"
#include "saker/kernels/quantize/quantize_loops.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

namespace saker::kernels {
namespace {

constexpr int kMaxGroup = 64;

// First bit of code number n of a word, see code_block.h.
int code_shift(int bits, int n) {
  return bits * (n / 2) + 16 * (n % 2);
}

// Writes codes of elements [first, first + count) of one key: whole words.
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

// As above for one value: its part of each word.
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

// Quantizes a group to codes of `bits` bits. Values and the line are rounded to bf16 if `bf16`. NaN
// gives any code; infinity gives any codes and a non-finite line.
AffineLine quantize_group(
    const float* values, int count, int bits, bool bf16, std::uint8_t* codes
) {
  const int padded = (count + kLanes - 1) / kLanes * kLanes;
  const DType dtype = bf16 ? DType::kBFloat16 : DType::kFloat32;
  const auto encode = quantize_loops().encode_group;
  if (padded == count) {
    return encode(dtype, bits, values, count, codes);
  }
  // Pads to whole vectors with a repeated value, which changes no range.
  alignas(64) float row[kMaxGroup];
  alignas(64) std::uint8_t row_codes[kMaxGroup];
  std::fill(std::copy_n(values, count, row), row + padded, values[0]);
  const AffineLine line = encode(dtype, bits, row, padded, row_codes);
  std::copy_n(row_codes, count, codes);
  return line;
}

}  // namespace

int code_group(int dim) {
  return dim % kMaxGroup == 0 ? kMaxGroup : kMaxGroup / 2;
}

int page_group(CodeSide side, int dim, int bits) {
  return side == CodeSide::kKeys && bits == 4 ? kMaxGroup / 2 : code_group(dim);
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
  std::uint8_t codes[kMaxGroup];
  float rest[kMaxGroup];
  for (int g = 0; g < block.groups; ++g) {
    const int first = g * block.group;
    const int count = block.group_dim(g);
    const float* values = row + first;
    if (block.has_offsets()) {
      for (int i = 0; i < count; ++i) {
        const float value = block.bf16 ? from_bf16(to_bf16(values[i])) : values[i];
        rest[i] = value - read_offset(block, at, first + i);
      }
      values = rest;
    }
    const AffineLine terms = quantize_group(values, count, block.bits, block.bf16, codes);
    write_group(block, side, at, slot, g, {codes, terms});
  }
}

void write_offsets(const CodeBlock& block, std::byte* at, const float* offsets) {
  constexpr float kLargest = 32767.0F;
  float largest = 0.0F;
  for (int d = 0; d < block.dim; ++d) {
    const float magnitude = std::fabs(offsets[d]);
    largest = magnitude > largest || std::isnan(magnitude) ? magnitude : largest;
  }
  // A smaller step would be subnormal.
  const bool usable = std::isfinite(largest) && largest > 1e-30F;
  const float step = usable ? largest / kLargest : 0.0F;
  auto* integers = reinterpret_cast<std::int16_t*>(at + block.offsets_at());
  for (int d = 0; d < block.dim; ++d) {
    integers[d] = usable ? static_cast<std::int16_t>(std::nearbyint(offsets[d] / step)) : 0;
  }
  std::memcpy(at + block.step_at(), &step, sizeof(step));
}

float read_offset(const CodeBlock& block, const std::byte* at, int d) {
  float step = 0.0F;
  std::memcpy(&step, at + block.step_at(), sizeof(step));
  return step * reinterpret_cast<const std::int16_t*>(at + block.offsets_at())[d];
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

AffineLine read_terms(const CodeBlock& block, const std::byte* at, int slot, int g) {
  const std::byte* scales = at + block.code_bytes;
  return {
      read_term(block, scales, slot, g),
      read_term(block, scales + block.term_bytes, slot, g),
  };
}

float read_element(const CodeBlock& block, CodeSide side, const std::byte* at, int slot, int d) {
  const AffineLine terms = read_terms(block, at, slot, d / block.group);
  const float rest =
      terms.scale * static_cast<float>(read_code(block, side, at, slot, d)) + terms.bias;
  return block.has_offsets() ? rest + read_offset(block, at, d) : rest;
}

void read_row(const CodeBlock& block, CodeSide side, const std::byte* at, int slot, float* row) {
  for (int d = 0; d < block.dim; ++d) {
    row[d] = read_element(block, side, at, slot, d);
  }
}

void copy_code_slots(
    const CodeBlock& block, CodeSide side, const std::byte* from, std::byte* to, int slots
) {
  constexpr std::size_t kWord = 4;
  const std::size_t offsets = block.offsets_at();
  if (std::memcmp(from + offsets, to + offsets, block.offset_bytes) != 0) {
    std::vector<float> row(block.dim);
    for (int slot = 0; slot < slots; ++slot) {
      read_row(block, side, from, slot, row.data());
      write_codes(block, side, to, slot, row.data());
    }
    return;
  }
  const bool keys = side == CodeSide::kKeys;
  const int codes = block.codes_per_word();
  // A line of words has all slots: one per word, or `codes` of them in each of 16 lanes.
  const std::size_t line = keys ? kPageRows * kWord : kPageRows / codes * kLanes * kWord;
  const int whole = keys ? slots : slots / codes;
  const std::size_t whole_bytes = static_cast<std::size_t>(whole) * (keys ? 1 : kLanes) * kWord;
  std::uint32_t mask = 0;  // Bits of our slots in a word that also has other slots.
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
  for (std::size_t at = block.code_bytes; at < offsets; at += kPageRows * term) {
    std::memcpy(to + at, from + at, static_cast<std::size_t>(slots) * term);
  }
}

}  // namespace saker::kernels
