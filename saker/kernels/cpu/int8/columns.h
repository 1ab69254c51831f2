// SPDX-License-Identifier: Apache-2.0
#pragma once

// Columns of a weight in lanes, from its words.

#include "saker/kernels/cpu/int8/panels.h"

namespace saker::kernels::SAKER_ISA::int8 {

// How the words of a weight give columns, one after the other.
struct NibbleColumns {
  static constexpr int kColumns = 8;  // Per word.

  template <int index>
  static F32x16 column(U32x16 word) {
    return to_float(bit_and(shift_right<4 * index>(word), broadcast_u32(0xfU)));
  }
};

struct ByteColumns {
  static constexpr int kColumns = 4;

  template <int index>
  static F32x16 column(U32x16 word) {
    return to_float(bit_and(shift_right<8 * index>(word), broadcast_u32(0xffU)));
  }
};

struct E2m1Columns {
  static constexpr int kColumns = 8;

  template <int index>
  static F32x16 column(U32x16 word) {
    return look_up(E2m1Format::kValues, shift_right<4 * index>(word));
  }
};

struct E4m3Columns {
  static constexpr int kColumns = 4;

  template <int index>
  static F32x16 column(U32x16 word) {
    return E4m3Format::column<index>(word);
  }
};

struct PairColumns {
  static constexpr int kColumns = 2;

  template <int index>
  static F32x16 column(U32x16 word) {
    return index == 0 ? even_bf16(word) : odd_bf16(word);
  }
};

// The words of one panel's columns of a block.
struct PanelWords {
  const std::byte* at;
  int count;  // Columns.

  U32x16 word(int index) const {
    return load_u32(reinterpret_cast<const std::uint32_t*>(at) + index * kBlockRows);
  }
};

// A group's scales and biases, which follow its words.
struct ScaleAndBias {
  F32x16 scale;
  F32x16 bias = zero();

  ScaleAndBias(const PackedMatrix& weight, const std::byte* group) {
    const std::byte* scales = group + weight.read_word_bytes();
    scale = load_scales(weight.scale_kind, scales);
    if (weight.terms == TermKind::kScale) {
      bias = mul(scale, broadcast(-static_cast<float>(weight.zero)));
    } else {
      bias = load_scales(weight.scale_kind, scales + kBlockRows * scale_bytes(weight.scale_kind));
    }
  }
};

}  // namespace saker::kernels::SAKER_ISA::int8
