// SPDX-License-Identifier: Apache-2.0
#pragma once

// A row's codes of a chunk of 128 columns to four steps of 32 bf16: scale * code + bias, rounded to
// float32 and then to bf16.

#include "saker/kernels/amx/tile.h"
#include "saker/kernels/amx/words.h"
#include "saker/kernels/codes/formats.h"
#include "saker/kernels/cpu/packed_matrix.h"

namespace saker::kernels::SAKER_ISA {

inline constexpr int kChunkSteps = kChunkColumns / kStepColumns;

// Eight pairs of bias and scale as float32.
template <ScaleKind kKind>
[[gnu::always_inline]] inline F32x16 load_pairs(const std::byte* at) {
  if constexpr (kKind == ScaleKind::kBFloat16) {
    return load_bf16(reinterpret_cast<const std::uint16_t*>(at));
  } else if constexpr (kKind == ScaleKind::kFloat16) {
    return load_f16(reinterpret_cast<const std::uint16_t*>(at));
  } else {
    return load(reinterpret_cast<const float*>(at));
  }
}

alignas(64
) inline constexpr float kWholeCodes[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

// A row's codes of 4 bits: the sixteen weights that the codes of group g can mean are meanings(g).
// They become bf16 and are looked up, 32 codes at a time.
template <int kGroups, typename Meanings>
[[gnu::always_inline]] inline void unpack_nibbles(
    const std::byte* codes, const Meanings& meanings, std::byte* to
) {
  const U32x16 words = load_u32(reinterpret_cast<const std::uint32_t*>(codes));
  U32x16 tables[kChunkSteps];
  if constexpr (kGroups == 1) {
    const F32x16 weights = meanings(0);
    tables[0] = tables[1] = tables[2] = tables[3] = bf16_pairs(weights, weights);
  } else {
    unroll<kGroups / 2>([&](auto pair) {
      constexpr int kFirst = 2 * pair.kValue;
      const U32x16 both = bf16_pairs(meanings(kFirst), meanings(kFirst + 1));
      if constexpr (kGroups == 2 * kChunkSteps) {
        tables[pair.kValue] = both;
      } else {
        constexpr int kSteps = kChunkSteps / kGroups;  // Of a group.
        unroll<kSteps>([&](auto i) {
          tables[kFirst * kSteps + i.kValue] = repeat_half<0>(both);
          tables[(kFirst + 1) * kSteps + i.kValue] = repeat_half<1>(both);
        });
      }
    });
  }
  unroll<kChunkSteps>([&](auto step) {
    U32x16 index = shift_right_words<4 * step.kValue>(words);
    if constexpr (kGroups == 2 * kChunkSteps) {
      index = name_halves(index);
    }
    store_u32(
        reinterpret_cast<std::uint32_t*>(to + step.kValue * kTileBytes),
        look_up_words(tables[step.kValue], index)
    );
  });
}

// Codes of 4 bits with scales and biases.
template <ScaleKind kKind, int kGroupCount>
struct NibbleChunk {
  static constexpr int kCodeBytes = kChunkColumns / 2;  // Of a row.
  static constexpr int kTerms = 2 * kGroupCount;        // Of a row: bias and scale of each group.
  static constexpr int kTermBytes = scale_bytes(kKind);

  [[gnu::always_inline]] static F32x16 load_terms(const std::byte* pairs) {
    return load_pairs<kKind>(pairs);
  }

  [[gnu::always_inline]] static void unpack_row(
      const std::byte* codes, const float* terms, std::byte* to
  ) {
    const auto meanings = [terms](int group) {
      const F32x16 bias = broadcast(terms[2 * group]);
      return fma(broadcast(terms[2 * group + 1]), load(kWholeCodes), bias);
    };
    unpack_nibbles<kGroupCount>(codes, meanings, to);
  }
};

// Scales without biases.
struct Bf16Scales {
  static constexpr int kTermBytes = scale_bytes(ScaleKind::kBFloat16);

  [[gnu::always_inline]] static F32x16 load_terms(const std::byte* scales) {
    return load_bf16(reinterpret_cast<const std::uint16_t*>(scales));
  }
};

// Codes of E2M1 with scales.
template <int kGroups>
struct SmallFloatChunk : Bf16Scales {
  static constexpr int kCodeBytes = kChunkColumns / 2;
  static constexpr int kTerms = kGroups;

  [[gnu::always_inline]] static void unpack_row(
      const std::byte* codes, const float* terms, std::byte* to
  ) {
    const auto meanings = [terms](int group) {
      return mul(broadcast(terms[group]), load(E2m1Format::kValues));
    };
    unpack_nibbles<kGroups>(codes, meanings, to);
  }
};

// Codes of 8 bits. They become bits of 2^15 + code, and biases are those of such numbers.
template <ScaleKind kKind, int kGroupCount>
struct ByteChunk {
  static constexpr int kCodeBytes = kChunkColumns;
  static constexpr int kTerms = 2 * kGroupCount;
  static constexpr int kTermBytes = scale_bytes(kKind);

  [[gnu::always_inline]] static F32x16 load_terms(const std::byte* pairs) {
    const F32x16 terms = load_pairs<kKind>(pairs);
    return fma(alternate(-kByteBase, 0), swap_pairs(terms), terms);
  }

  [[gnu::always_inline]] static void unpack_row(
      const std::byte* codes, const float* terms, std::byte* to
  ) {
    unroll<kChunkSteps>([&](auto step) {
      constexpr int kGroup = step.kValue * kGroupCount / kChunkSteps;
      constexpr int kQuarter = step.kValue % 2 * 2;  // Of 64 codes.
      const F32x16 bias = broadcast(terms[2 * kGroup]);
      const F32x16 scale = broadcast(terms[2 * kGroup + 1]);
      const U32x16 words =
          load_u32(reinterpret_cast<const std::uint32_t*>(codes + step.kValue / 2 * 64));
      const F32x16 first = fma(scale, above_byte_base<kQuarter>(words), bias);
      const F32x16 second = fma(scale, above_byte_base<kQuarter + 1>(words), bias);
      store_u32(
          reinterpret_cast<std::uint32_t*>(to + step.kValue * kTileBytes), bf16_pairs(first, second)
      );
    });
  }
};

// Codes of E4M3 with scales, in groups of one step.
struct SmallByteChunk : Bf16Scales {
  static constexpr int kCodeBytes = kChunkColumns;
  static constexpr int kTerms = kChunkSteps;

  [[gnu::always_inline]] static void unpack_row(
      const std::byte* codes, const float* terms, std::byte* to
  ) {
    unroll<kChunkSteps>([&](auto step) {
      constexpr int kQuarter = step.kValue % 2 * 2;  // Of 64 codes.
      const F32x16 scale = broadcast(terms[step.kValue]);
      const U32x16 words =
          load_u32(reinterpret_cast<const std::uint32_t*>(codes + step.kValue / 2 * 64));
      const F32x16 first = mul(scale, e4m3_values(upper_bytes<kQuarter>(words)));
      const F32x16 second = mul(scale, e4m3_values(upper_bytes<kQuarter + 1>(words)));
      store_u32(
          reinterpret_cast<std::uint32_t*>(to + step.kValue * kTileBytes), bf16_pairs(first, second)
      );
    });
  }
};

}  // namespace saker::kernels::SAKER_ISA
