// SPDX-License-Identifier: Apache-2.0
#pragma once

// A packed weight as the bodies read it: plain data.
//
// Rows are taken in NR blocks of 16; rows past the end are zero. Blocks follow each other at
// block_bytes(), a multiple of 32. A block's layout depends on the order.
//
// kInterleavedNr16: each row of a block is a lane. One block holds, in this order:
//   float32   [K][16] values                 float16   [K][16] values
//   bf16      [ceil(K / 2)][16] pairs of k, the even one in the low half
//   nibble    per group: [group / 8][16] words, then 16 scales, 16 biases. Nibble i of a word is
//   the code of column i of 8.
//   byte      per group: [group / 4][16] words, then 16 scales, 16 biases. Byte i of a word is the
//   code of column i of 4.
//   e2m1      per group: [group / 8][16] words, then 16 scales. Nibble i of a word is the code of
//   column i of 8.
//   e4m3      per group: [group / 4][16] words, then 16 scales. Byte i of a word is the code of
//   column i of 4. A group with a NaN code has the scale NaN, also in kTileOrder.
// Nibbles and bytes whose terms are kScale have no biases: code `zero` means 0.
// Super-blocks of 256 columns hold the words of all their groups, then terms (see TermKind).
// Codes with fewer bits than their fields lie as narrow_codes.h says.
//
// kTileOrder, for bf16 and small floats only: rows lie as tile registers (cpu/amx/tile.h) and vectors
// along a row (cpu/gemm/bf16_panels.h) load them. Columns past the end are zero.
//   bf16      [ceil(K / 32)][16][32] values; or, where `block_places` is set, sixteen rows of K
//   values as the checkpoint has them
//   e2m1      per chunk of 128 columns: [16][32] words of 16 bits, nibble i of word j is the code
//   of column 32 i + j; then [16][128 / group] scales.
//   e4m3      per chunk of 128 columns: [16][128] codes; then the scales.

#include "saker/kernels/layout/packed_kinds.h"

#include <cstddef>

namespace saker::kernels {

// All its functions are inlined: a copy emitted by an AVX-512 source could replace the other sets'
// at link time.
struct PackedMatrix {
  PackedKind kind = PackedKind::kFloat32;
  PackedOrder order = PackedOrder::kInterleavedNr16;
  ScaleKind scale_kind = ScaleKind::kFloat32;  // For codes only, as is `group`.
  int rows = 0;
  int columns = 0;
  int group = 0;
  int code_bits = 0;                      // In memory; for codes only.
  int largest_code = 0;                   // Nibble and byte only.
  TermKind terms = TermKind::kScaleBias;  // For codes only.
  int zero = 0;  // The code that means 0 where groups have no biases; nibble and byte only.
  const std::byte* data = nullptr;
  // Set instead of `data` where bf16 blocks stay where the checkpoint has them: the first byte of
  // each block, unaligned. Then K is a multiple of 32 and N of 16.
  const std::byte* const* block_places = nullptr;

  [[gnu::always_inline]] bool in_place() const { return block_places != nullptr; }

  [[gnu::always_inline]] bool has_groups() const {
    return kind == PackedKind::kNibble || kind == PackedKind::kByte || has_small_floats();
  }

  // Codes with scales and no biases.
  [[gnu::always_inline]] bool has_small_floats() const {
    return kind == PackedKind::kE2m1 || kind == PackedKind::kE4m3;
  }

  [[gnu::always_inline]] int blocks() const { return (rows + kBlockRows - 1) / kBlockRows; }

  [[gnu::always_inline]] int groups() const { return columns / group; }

  // Bits of a code's field in a word.
  [[gnu::always_inline]] int field_bits() const {
    return kind == PackedKind::kByte || kind == PackedKind::kE4m3 ? 8 : 4;
  }

  // True if fields are in halves, or named.
  [[gnu::always_inline]] bool is_narrow() const { return has_groups() && code_bits < field_bits(); }

  // False if each group is words of whole fields, then its scales and biases.
  [[gnu::always_inline]] bool is_widened() const { return is_narrow() || in_super_blocks(); }

  // True if groups lie in super-blocks, with terms that are unpacked before products read them.
  [[gnu::always_inline]] bool in_super_blocks() const { return terms >= TermKind::kPairs; }

  [[gnu::always_inline]] int super_groups() const { return kSuperColumns / group; }

  // Bytes of a super-block's terms.
  [[gnu::always_inline]] std::size_t super_term_bytes() const {
    return kernels::super_term_bytes(terms);
  }

  [[gnu::always_inline]] std::size_t super_bytes() const {
    return super_groups() * code_bytes(code_bits) + super_term_bytes();
  }

  // Bytes of a group in memory with its terms, or its share of a super-block: kInterleavedNr16 only.
  [[gnu::always_inline]] std::size_t group_bytes() const {
    return in_super_blocks() ? super_bytes() / super_groups()
                             : code_bytes(code_bits) + term_bytes();
  }

  // Bytes of a group's codes in memory.
  [[gnu::always_inline]] std::size_t word_bytes() const { return code_bytes(code_bits); }

  // Bytes of a group's scales and biases as products read them.
  [[gnu::always_inline]] std::size_t term_bytes() const { return kBlockRows * row_term_bytes(); }

  // Bytes of a row's scale and bias in one group.
  [[gnu::always_inline]] std::size_t row_term_bytes() const {
    return (terms == TermKind::kScale ? 1 : 2) * scale_bytes(scale_kind);
  }

  [[gnu::always_inline]] std::size_t read_word_bytes() const { return code_bytes(field_bits()); }

  [[gnu::always_inline]] std::size_t read_group_bytes() const {
    return read_word_bytes() + term_bytes();
  }

  // Chunks of a block, and bytes of a chunk: kTileOrder only.
  [[gnu::always_inline]] int chunks() const {
    return (columns + kChunkColumns - 1) / kChunkColumns;
  }

  [[gnu::always_inline]] std::size_t chunk_code_bytes() const {
    return std::size_t{kBlockRows} * kChunkColumns * field_bits() / 8;
  }

  [[gnu::always_inline]] std::size_t chunk_term_bytes() const {
    return kChunkColumns / static_cast<std::size_t>(group) * row_term_bytes();
  }

  [[gnu::always_inline]] std::size_t chunk_bytes() const {
    return chunk_code_bytes() + kBlockRows * chunk_term_bytes();
  }

  [[gnu::always_inline]] std::size_t block_bytes() const {
    return order == PackedOrder::kTileOrder ? tiled_block_bytes() : lane_block_bytes();
  }

  // Byte distance from a row of a block to the next, and from 32 of its columns to the next: bf16
  // in kTileOrder only.
  [[gnu::always_inline]] std::ptrdiff_t tile_row_bytes() const {
    return in_place() ? std::ptrdiff_t{2} * columns : kStepColumns * 2;
  }

  [[gnu::always_inline]] std::ptrdiff_t tile_step_bytes() const {
    return std::ptrdiff_t{2} * kStepColumns * (in_place() ? 1 : kBlockRows);
  }

  [[gnu::always_inline]] const std::byte* block(int index) const {
    if (in_place()) {
      return block_places[index];
    }
    return data + static_cast<std::size_t>(index) * block_bytes();
  }

 private:
  [[gnu::always_inline]] std::size_t code_bytes(int bits) const {
    return static_cast<std::size_t>(group) * bits * kBlockRows / 8;
  }

  [[gnu::always_inline]] std::size_t tiled_block_bytes() const {
    if (has_groups()) {
      return static_cast<std::size_t>(chunks()) * chunk_bytes();
    }
    const auto steps = static_cast<std::size_t>(columns + kStepColumns - 1) / kStepColumns;
    return steps * kBlockRows * kStepColumns * 2;
  }

  [[gnu::always_inline]] std::size_t lane_block_bytes() const {
    const auto k = static_cast<std::size_t>(columns);
    switch (kind) {
      case PackedKind::kFloat32:
        return k * kBlockRows * 4;
      case PackedKind::kFloat16:
        return k * kBlockRows * 2;
      case PackedKind::kBFloat16:
        return (k + 1) / 2 * kBlockRows * 4;
      default:
        return static_cast<std::size_t>(groups()) * group_bytes();
    }
  }
};

}  // namespace saker::kernels
