// SPDX-License-Identifier: Apache-2.0
#pragma once

// Cached rows as codes: quantizes as mx::quantize in affine mode (MLX's affine_quantize on CPU),
// and reads and writes codes in a page. The layout is in code_block.h. A page's offsets are
// subtracted from keys before they are quantized.

#include "saker/kernels/layout/code_block.h"
#include "saker/kernels/quantize/quantize_loops.h"

#include <cstddef>
#include <cstdint>

namespace saker::kernels {

// Elements that share a scale in MLX's layout: 64, or 32 where the dimension is not a multiple of
// 64.
int code_group(int dim);

enum class CodeSide : std::uint8_t { kKeys, kValues };

// Elements that share a scale in a page: 32 for 4-bit keys, else code_group().
int page_group(CodeSide side, int dim, int bits);

// One quantized group of a row.
struct GroupCodes {
  const std::uint8_t* codes;
  AffineLine terms;
};

// Writes one row of a head at slot `slot` (position modulo 64) of its block in a page. Rows of one
// block share words, so only one thread at a time may write there.
void write_codes(const CodeBlock& block, CodeSide side, std::byte* at, int slot, const float* row);
// Writes one group, number g, of such a row.
void write_group(
    const CodeBlock& block, CodeSide side, std::byte* at, int slot, int g, const GroupCodes& group
);
std::uint8_t read_code(const CodeBlock& block, CodeSide side, const std::byte* at, int slot, int d);
AffineLine read_terms(const CodeBlock& block, const std::byte* at, int slot, int g);
// Element d as mx::dequantize computes it, before rounding to the cache's dtype.
float read_element(const CodeBlock& block, CodeSide side, const std::byte* at, int slot, int d);
// A whole row, element by element as read_element.
void read_row(const CodeBlock& block, CodeSide side, const std::byte* at, int slot, float* row);
// Sets a page's offsets, each rounded to the nearest that it can hold; all to zero if one is not
// finite.
void write_offsets(const CodeBlock& block, std::byte* at, const float* offsets);
float read_offset(const CodeBlock& block, const std::byte* at, int d);
// Copies the rows of slots [0, slots) of one head. Quantizes keys anew if the offsets differ.
void copy_code_slots(
    const CodeBlock& block, CodeSide side, const std::byte* from, std::byte* to, int slots
);

}  // namespace saker::kernels
