// SPDX-License-Identifier: Apache-2.0
#pragma once

// The layout of one head's keys, or values, in a page of a quantized cache. It has codes of 4 or 8
// bits, then a scale per group of elements of a row, then a bias. Keys also have an offset per
// element, which all rows of the page share. An element is scale * code + bias + offset. Plain
// data, since bodies of all instruction sets read it.
//
// Codes lie in 32-bit words, where bf16 pages have pairs (see kv_pages.h), with kCodes = 32 / bits:
//   keys     [D / kCodes][64] words; a word holds kCodes elements of one key
//   values   [D_v / 16][64 / kCodes][16] words; a word holds one element of kCodes keys
// Code number n of a word is half n % 2 of pair n / 2: bits [bits * (n / 2) + 16 * (n % 2), ...).
// So one shift and one mask of a word give a pair. Scales and biases are [groups][64] in the
// cache's dtype. The last group of a row is shorter where the dimension is not a multiple of the
// group. Codes are padded with zeros.
//
// Offsets are 16-bit integers, padded with zeros to a multiple of kOffsetLanes, then a float32: the
// step by which they are multiplied. A page of zeros has offsets of zero
// (docs/adr/0038-offsets-of-cached-keys.md).

#include "saker/kernels/layout/kv_block.h"

#include <cstddef>

namespace saker::kernels {

// Offsets of one page are padded to a multiple of this.
inline constexpr int kOffsetLanes = 32;

struct CodeBlock {
  int bits = kUnquantizedBits;  // 4 or 8; kUnquantizedBits: not codes, all else is unused.
  int dim = 0;
  int group = 0;  // Elements of a row that share a scale.
  int groups = 0;
  bool bf16 = false;             // Dtype of scales and biases; else float32.
  std::size_t code_bytes = 0;    // Distance from the codes to the scales.
  std::size_t term_bytes = 0;    // Distance from the scales to the biases.
  std::size_t offset_bytes = 0;  // Size of offsets and step; 0 without offsets.

  bool is_quantized() const { return bits != kUnquantizedBits; }

  int codes_per_word() const { return 32 / bits; }

  int group_dim(int g) const { return dim - g * group < group ? dim - g * group : group; }

  bool has_offsets() const { return offset_bytes != 0; }

  std::size_t offsets_at() const { return code_bytes + 2 * term_bytes; }

  std::size_t step_at() const {
    const int padded = (dim + kOffsetLanes - 1) / kOffsetLanes * kOffsetLanes;
    return offsets_at() + 2 * static_cast<std::size_t>(padded);
  }

  std::size_t bytes() const { return offsets_at() + offset_bytes; }
};

}  // namespace saker::kernels
