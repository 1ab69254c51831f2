// SPDX-License-Identifier: Apache-2.0
#pragma once

// The kinds, orders and terms of packed weights, see packed_matrix.h.

#include <cstddef>
#include <cstdint>

namespace saker::kernels {

inline constexpr int kBlockRows = 16;
inline constexpr int kStepColumns = 32;    // Columns of a row in one tile.
inline constexpr int kChunkColumns = 128;  // Columns of a chunk of codes: four steps.
inline constexpr int kLargestGroup = 128;
inline constexpr int kSuperColumns = 256;  // Columns of a super-block.

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

// The orders that an instruction set's bodies multiply. All other weights are kInterleavedNr16.
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

// The terms of a group's codes. In super-blocks they lie behind the words of all groups:
//   kPairs    16 float16 d, 16 float16 dmin, then three lines of 16 words. Numbers of 6 bits, eight
//   scales and eight minima of a row, lie five to a word from its lowest bit. Bits 30 and 31 of the
//   three words are the last minimum's, lowest bits first. A group's scale is d * scale, its bias
//   -(dmin * minimum).
//   kNibbles  16 float16 d, 16 float16 dmin, then four lines of 16 words. Byte i of word j is group
//   4 j + i's: the scale below the minimum. Scale and bias are as above.
//   kSixBits  16 float16 d, then three lines as above of sixteen numbers: each group's scale plus
//   32. A group's scale is d * scale.
//   kBytes    16 float16 d, then four lines of 16 words. Byte i of word j is group 4 j + i's scale
//   plus 128. A group's scale is d * scale.
//   kSplit    16 float16 d, then a line of 16 words with the lower four bits of eight groups' scales
//   plus 32, then 16 halves of words with the upper two, lowest first. A group's scale is d * scale.
enum class TermKind : std::uint8_t {
  kScaleBias,
  kScale,
  kPairs,
  kNibbles,
  kSixBits,
  kBytes,
  kSplit,
};

// Bytes of a super-block's terms.
[[gnu::always_inline]] constexpr std::size_t super_term_bytes(TermKind terms) {
  constexpr std::size_t kFactors = 32;
  constexpr std::size_t kLine = 64;
  switch (terms) {
    case TermKind::kPairs:
      return 2 * kFactors + 3 * kLine;
    case TermKind::kNibbles:
      return 2 * kFactors + 4 * kLine;
    case TermKind::kSixBits:
      return kFactors + 3 * kLine;
    case TermKind::kSplit:
      return kFactors + kLine + kLine / 2;
    default:
      return kFactors + 4 * kLine;
  }
}

// The codes of 8 bits that nibbles of IQ4_NL and IQ4_XS name: their values plus 128
// (https://github.com/ggml-org/ggml, ggml-common.h, kvalues_iq4nl).
inline constexpr std::uint8_t kTableCodes[16] = {
    1, 24, 45, 63, 79, 93, 106, 118, 129, 141, 153, 166, 181, 197, 217, 241
};

enum class ScaleKind : std::uint8_t { kFloat32, kFloat16, kBFloat16 };

[[gnu::always_inline]] constexpr std::size_t scale_bytes(ScaleKind kind) {
  return kind == ScaleKind::kFloat32 ? 4 : 2;
}

}  // namespace saker::kernels
