// SPDX-License-Identifier: Apache-2.0
#pragma once

// A packed weight as the bodies read it: plain data.
//
// Rows are taken in blocks of 16; rows past the end are zero. Blocks follow each other at
// block_bytes(), which is a multiple of 32. What lies in a block depends on the order.
//
// In the order kInterleavedNr16 each row of a block is a lane. Of one block, in this order:
//   float32   [K][16] values                 float16   [K][16] values
//   bf16      [ceil(K / 2)][16] pairs of k, the even one in the low half
//   nibble    per group: [group / 8][16] words, then 16 scales, 16 biases. Nibble i of a word is
//   the code of column i of 8.
//   byte      per group: [group / 4][16] words, then 16 scales, 16 biases. Byte i of a word is the
//   code of column i of 4.
//   e2m1      per group: [group / 8][16] words, then 16 scales. Nibble i of a word is the code of
//   column i of 8.
//   e4m3      per group: [group / 4][16] words, then 16 scales. Byte i of a word is the code of
//   column i of 4. The scale of a group one of whose codes is NaN is NaN, also in kTileOrder.
// Where codes of nibble or byte have fewer bits than these, their words lie in planes: each 32
// columns, as many lines of 16 words as a field has bits, become `code_bits` lines. The lower half
// of a field of B bits: line i holds it of lines 2 i and, shifted left by B / 2, 2 i + 1. Then the
// E bits above: a line holds them of B / E lines, number i of these shifted left by E i, at the
// field's lowest bit.
//
// In the order kTileOrder, of bf16 and small floats only, rows lie as tile registers load them
// (amx/tile.h) and vectors along a row do (dots/panels.h), zero behind the last column:
//   bf16      [ceil(K / 32)][16][32] values; or, where `block_places` is set, sixteen rows of K
//   values as the checkpoint has them
//   e2m1      per chunk of 128 columns: [16][32] words of 16 bits, nibble i of word j is the code
//   of column 32 i + j; then [16][128 / group] scales.
//   e4m3      per chunk of 128 columns: [16][128] codes; then the scales.

#include <cstddef>
#include <cstdint>

namespace saker::kernels {

inline constexpr int kBlockRows = 16;
inline constexpr int kStepColumns = 32;    // Of a row that one tile holds.
inline constexpr int kChunkColumns = 128;  // Of codes, four steps.
inline constexpr int kLargestGroup = 128;

enum class PackedKind : std::uint8_t {
  kFloat32,
  kFloat16,
  kBFloat16,
  kNibble,
  kByte,
  kE2m1,
  kE4m3,
};
enum class PackedOrder : std::uint8_t { kInterleavedNr16, kTileOrder };

// Those of a set's products. All other weights lie in lanes.
struct PackedOrders {
  PackedOrder small_floats;  // E2M1 and E4M3.
  PackedOrder bf16;

  [[gnu::always_inline]] constexpr PackedOrder of(PackedKind kind) const {
    if (kind == PackedKind::kBFloat16) {
      return bf16;
    }
    const bool is_small = kind == PackedKind::kE2m1 || kind == PackedKind::kE4m3;
    return is_small ? small_floats : PackedOrder::kInterleavedNr16;
  }
};

enum class ScaleKind : std::uint8_t { kFloat32, kFloat16, kBFloat16 };

[[gnu::always_inline]] constexpr std::size_t scale_bytes(ScaleKind kind) {
  return kind == ScaleKind::kFloat32 ? 4 : 2;
}

// Its functions are always inlined: one that a source of AVX-512 emitted could replace the other
// sets' at link time.
struct PackedMatrix {
  PackedKind kind = PackedKind::kFloat32;
  PackedOrder order = PackedOrder::kInterleavedNr16;
  ScaleKind scale_kind = ScaleKind::kFloat32;  // Of codes only, like group.
  int rows = 0;
  int columns = 0;
  int group = 0;
  int code_bits = 0;     // In memory; of codes only.
  int largest_code = 0;  // Nibble and byte only.
  const std::byte* data = nullptr;
  // Set instead of `data` where blocks of bf16 stay where the checkpoint has them: each block's
  // first byte, without alignment. K is a multiple of 32 and N one of 16.
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

  // Of a word's codes.
  [[gnu::always_inline]] int field_bits() const {
    return kind == PackedKind::kByte || kind == PackedKind::kE4m3 ? 8 : 4;
  }

  [[gnu::always_inline]] bool in_planes() const { return has_groups() && code_bits < field_bits(); }

  // Bytes of a group in memory, and of its words as products read them, without and with its scales
  // and biases: kInterleavedNr16 only.
  [[gnu::always_inline]] std::size_t group_bytes() const {
    return code_bytes(code_bits) + term_bytes();
  }

  // Of a group's scales and biases.
  [[gnu::always_inline]] std::size_t term_bytes() const { return kBlockRows * row_term_bytes(); }

  // Of a row's scale and bias.
  [[gnu::always_inline]] std::size_t row_term_bytes() const {
    return (has_small_floats() ? 1 : 2) * scale_bytes(scale_kind);
  }

  [[gnu::always_inline]] std::size_t read_word_bytes() const { return code_bytes(field_bits()); }

  [[gnu::always_inline]] std::size_t read_group_bytes() const {
    return read_word_bytes() + term_bytes();
  }

  // Chunks of a block, the bytes of a chunk's codes, of one row's scales, and of all: kTileOrder
  // only.
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

  // From a row of a block to the next, and from 32 of its columns to the next: bf16 in the order
  // kTileOrder only.
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
