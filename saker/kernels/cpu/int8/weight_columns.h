// SPDX-License-Identifier: Apache-2.0
#pragma once

// Weights as int8 codes, four columns to a word: a panel's columns of a few NR blocks. Weights in
// bf16 are read from kTileOrder, all others from kInterleavedNr16.

#include "saker/kernels/cpu/gemm/widen.h"
#include "saker/kernels/cpu/int8/columns.h"
#include "saker/kernels/cpu/int8/squares.h"

namespace saker::kernels::SAKER_ISA::int8 {

inline constexpr int kQuad = 4;  // Codes per word.

struct PanelCodes {
  alignas(64) std::uint32_t codes[kPanel / kQuad][kBlockStep][kBlockRows];
  alignas(64) float scales[kBlockStep][kBlockRows];
  alignas(64) std::uint32_t extras[kBlockStep][kBlockRows];  // 128 times the sum of the codes.
};

// For a panel of codes: the largest magnitude that its groups' codes can represent.
inline F32x16 largest_meaning(const PackedMatrix& weight, const PanelWords& words) {
  const F32x16 last = broadcast(static_cast<float>(weight.largest_code));
  Largest largest;
  const std::byte* group = words.at;
  for (int k = 0; k < words.count; k += weight.group, group += weight.read_group_bytes()) {
    const ScaleAndBias terms(weight, group);
    largest.add(terms.bias);
    largest.add(fma(terms.scale, last, terms.bias));
  }
  return largest.by_lane();
}

// The largest magnitude in a panel of small floats.
template <typename Columns>
F32x16 largest_small_float(const PackedMatrix& weight, const PanelWords& words) {
  Largest largest;
  const std::byte* group = words.at;
  for (int k = 0; k < words.count; k += weight.group, group += weight.group_bytes()) {
    const ScaleAndBias terms(weight, group);
    const PanelWords codes = {group, weight.group};
    for (int i = 0; i < weight.group / Columns::kColumns; ++i) {
      unroll<Columns::kColumns>([&](auto column) {
        largest.add(mul(Columns::template column<column.kValue>(codes.word(i)), terms.scale));
      });
    }
  }
  return largest.by_lane();
}

// The largest magnitude in a panel of bf16.
inline F32x16 largest_value(const PanelWords& words) {
  Largest largest;
  for (int i = 0; i < (words.count + 1) / 2; ++i) {
    largest.add(even_bf16(words.word(i)));
    largest.add(odd_bf16(words.word(i)));
  }
  return largest.by_lane();
}

// The largest magnitude in any panel.
inline F32x16 largest_of(const PackedMatrix& weight, const PanelWords& words) {
  switch (weight.kind) {
    case PackedKind::kE2m1:
      return largest_small_float<E2m1Columns>(weight, words);
    case PackedKind::kE4m3:
      return largest_small_float<E4m3Columns>(weight, words);
    default:
      return weight.has_groups() ? largest_meaning(weight, words) : largest_value(words);
  }
}

// Packs codes of a block's panel, column by column.
class CodeWriter {
 public:
  CodeWriter(PanelCodes& panel, int block) : panel_(panel), block_(block) {}

  // Adds the next four columns, already in multiples of the scales.
  [[gnu::always_inline]] void add(const F32x16 (&columns)[kQuad]) {
    const U32x16 low = broadcast_u32(0xffU);
    const U32x16 word = bit_or(
        bit_or(bit_and(to_int(columns[0]), low), shift_left<8>(bit_and(to_int(columns[1]), low))),
        bit_or(shift_left<16>(bit_and(to_int(columns[2]), low)), shift_left<24>(to_int(columns[3])))
    );
    extra_ = dot_bytes(extra_, broadcast_u32(0x80808080U), word);
    store_u32(panel_.codes[index_++][block_], word);
  }

  void finish() { store_u32(panel_.extras[block_], extra_); }

 private:
  PanelCodes& panel_;
  int block_;
  int index_ = 0;
  U32x16 extra_ = broadcast_u32(0);
};

// Writes the codes of one word, in multiples of the scales.
template <typename Columns>
[[gnu::always_inline]] inline void write_word(
    U32x16 word, F32x16 scale, F32x16 bias, CodeWriter& writer
) {
  unroll<Columns::kColumns / kQuad>([&](auto quad) {
    F32x16 columns[kQuad];
    unroll<kQuad>([&](auto j) {
      constexpr int kColumn = quad.kValue * kQuad + j.kValue;
      columns[j.kValue] = fma(Columns::template column<kColumn>(word), scale, bias);
    });
    writer.add(columns);
  });
}

template <typename Columns>
void write_groups(
    const PackedMatrix& weight, const PanelWords& words, F32x16 inverse, CodeWriter& writer
) {
  const std::byte* group = words.at;
  for (int k = 0; k < words.count; k += weight.group, group += weight.read_group_bytes()) {
    const ScaleAndBias terms(weight, group);
    const F32x16 scale = mul(terms.scale, inverse);
    const F32x16 bias = mul(terms.bias, inverse);
    const PanelWords codes = {group, weight.group};
    for (int i = 0; i < weight.group / Columns::kColumns; ++i) {
      write_word<Columns>(codes.word(i), scale, bias, writer);
    }
  }
}

inline void write_pairs(const PanelWords& words, F32x16 inverse, CodeWriter& writer) {
  const int count = (words.count + 1) / 2;
  for (int i = 0; i < count; i += 2) {
    const U32x16 first = words.word(i);
    const U32x16 second = i + 1 < count ? words.word(i + 1) : broadcast_u32(0);
    const F32x16 columns[kQuad] = {
        mul(PairColumns::column<0>(first), inverse),
        mul(PairColumns::column<1>(first), inverse),
        mul(PairColumns::column<0>(second), inverse),
        mul(PairColumns::column<1>(second), inverse),
    };
    writer.add(columns);
  }
}

// Bytes for a panel's words where they are rebuilt: pairs of bf16, which take more than codes with
// scales.
inline constexpr int kWordBytes = kPanel * kBlockRows * 2;

inline PanelWords words_of_pairs(const PackedMatrix& weight, int block, int k, std::byte* to) {
  const int count = smaller(kPanel, weight.columns - k);
  for (int i = 0; i < count; i += kStepColumns) {
    U32x16 words[kSquarePairs];
    load_square(weight, block, k + i, words);
    unroll<kSquarePairs>([&](auto j) { store_line(to, i / 2 + j.kValue, words[j.kValue]); });
  }
  return {to, count};
}

inline PanelWords words_at(const PackedMatrix& weight, int block, int k, std::byte* to) {
  if (weight.kind == PackedKind::kBFloat16) {
    return words_of_pairs(weight, block, k, to);
  }
  const int count = smaller(kPanel, weight.columns - k);
  if (weight.is_widened()) {
    return {widen(weight, block, 1, k / weight.group, count / weight.group, to).at, count};
  }
  return {weight.block(block) + k / weight.group * weight.group_bytes(), count};
}

// Computes the codes of the panel from column k on, for blocks [block, block + blocks).
inline void find_codes(
    const PackedMatrix& weight, int block, int blocks, int k, PanelCodes& panel
) {
  alignas(64) std::byte memory[kWordBytes];
  for (int b = 0; b < blocks; ++b) {
    const PanelWords words = words_at(weight, block + b, k, memory);
    const F32x16 largest = largest_of(weight, words);
    const F32x16 scale = div(largest, broadcast(kLargest));
    const F32x16 inverse = div(broadcast(1.0F), max(scale, broadcast(kSmallestScale)));
    store(panel.scales[b], scale);
    CodeWriter writer(panel, b);
    if (weight.kind == PackedKind::kNibble) {
      write_groups<NibbleColumns>(weight, words, inverse, writer);
    } else if (weight.kind == PackedKind::kByte) {
      write_groups<ByteColumns>(weight, words, inverse, writer);
    } else if (weight.kind == PackedKind::kE2m1) {
      write_groups<E2m1Columns>(weight, words, inverse, writer);
    } else if (weight.kind == PackedKind::kE4m3) {
      write_groups<E4m3Columns>(weight, words, inverse, writer);
    } else {
      write_pairs(words, inverse, writer);
    }
    writer.finish();
  }
}

}  // namespace saker::kernels::SAKER_ISA::int8
