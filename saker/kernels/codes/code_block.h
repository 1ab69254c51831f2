// SPDX-License-Identifier: Apache-2.0
#pragma once

// How a page of a quantized cache holds the keys, or the values, of one head: codes of 4 or 8 bits,
// then a scale for each group of elements of a row, then a bias; of keys also an offset for each
// element, which all rows of the page share. An element stands for scale * code + bias + offset.
// Plain data, since bodies of all instruction sets read it.
//
// Codes lie in 32-bit words by twos of what a pair of bf16 holds (see kv_pages.h): keys [D /
// kCodes][64] words, a word holds kCodes = 32 / bits elements of one key; values [D_v / 16][64 /
// kCodes][16] words, a word holds one element of kCodes keys. Code number n of a word is half n % 2
// of pair n / 2: bits [bits * (n / 2) + 16 * (n % 2), ...), so that one shift and one mask of a
// word give a pair. Scales and biases: [groups][64] in the cache's dtype. The last group of a row
// is shorter where the dimension is not a multiple of it; codes are padded with zeros.
//
// Offsets are 16-bit integers, padded with zeros to kOffsetLanes, then a float32: the step that
// they are multiples of. A page of zeros has offsets of zero
// (docs/adr/0038-offsets-of-cached-keys.md).

#include "saker/kernels/kv_block.h"

#include <cstddef>

namespace saker::kernels {

// Offsets of one page come in multiples of this many.
inline constexpr int kOffsetLanes = 32;

struct CodeBlock {
  int bits =
      kUnquantizedBits;  // 4 or 8; kUnquantizedBits: rows lie as they are, nothing else counts.
  int dim = 0;
  int group = 0;  // Elements of a row that share a scale.
  int groups = 0;
  bool bf16 = false;             // Scales and biases, else float32.
  std::size_t code_bytes = 0;    // From the codes to the scales.
  std::size_t term_bytes = 0;    // From the scales to the biases.
  std::size_t offset_bytes = 0;  // Of offsets and their step; 0 without offsets.

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
