// SPDX-License-Identifier: Apache-2.0
#pragma once

// Unpacks a row's small floats of a chunk of 128 columns to four steps of 32 bf16: scale * value,
// rounded to float32, then to bf16.

#include "saker/kernels/cpu/amx/e4m3_words.h"
#include "saker/kernels/cpu/amx/tile.h"
#include "saker/kernels/cpu/amx/words.h"
#include "saker/kernels/cpu/gemm/code_formats.h"
#include "saker/kernels/layout/packed_matrix.h"

namespace saker::kernels::SAKER_ISA {

inline constexpr int kChunkSteps = kChunkColumns / kStepColumns;

// The terms of groups.
struct Bf16Scales {
  static constexpr int kTermBytes = scale_bytes(ScaleKind::kBFloat16);

  [[gnu::always_inline]] static F32x16 load_terms(const std::byte* scales) {
    return load_bf16(reinterpret_cast<const std::uint16_t*>(scales));
  }
};

// Codes of E2M1. The sixteen possible weights of a group become bf16 and are looked up, 32 codes at
// a time.
template <int kGroups>
struct SmallFloatChunk : Bf16Scales {
  static constexpr int kCodeBytes = kChunkColumns / 2;  // Per row.
  static constexpr int kTerms = kGroups;                // Per row.

  [[gnu::always_inline]] static void unpack_row(
      const std::byte* codes, const float* terms, std::byte* to
  ) {
    constexpr bool kTwoGroups = kGroups == 2 * kChunkSteps;  // Per step.
    const U32x16 words = load_u32(reinterpret_cast<const std::uint32_t*>(codes));
    U32x16 tables[kChunkSteps];
    unroll<kGroups / 2>([&](auto pair) {
      constexpr int kFirst = 2 * pair.kValue;
      const U32x16 both = bf16_pairs(meanings(terms[kFirst]), meanings(terms[kFirst + 1]));
      if constexpr (kTwoGroups) {
        tables[pair.kValue] = both;
      } else {
        tables[kFirst] = repeat_half<0>(both);
        tables[kFirst + 1] = repeat_half<1>(both);
      }
    });
    unroll<kChunkSteps>([&](auto step) {
      U32x16 index = shift_right_words<4 * step.kValue>(words);
      if constexpr (kTwoGroups) {
        index = name_halves(index);
      }
      store_u32(
          reinterpret_cast<std::uint32_t*>(to + step.kValue * kTileBytes),
          look_up_words(tables[step.kValue], index)
      );
    });
  }

 private:
  [[gnu::always_inline]] static F32x16 meanings(float scale) {
    return mul(broadcast(scale), load(E2m1Format::kValues));
  }
};

// Codes of E4M3, in groups of one step. Scales are powers of two, so products are exact. If all
// stay in the range of bf16, codes are looked up and scales added to their exponents.
struct SmallByteChunk : Bf16Scales {
  static constexpr int kCodeBytes = kChunkColumns;
  static constexpr int kTerms = kChunkSteps;

  [[gnu::always_inline]] static void unpack_row(
      const std::byte* codes, const float* terms, std::byte* to
  ) {
    constexpr float kEnd = 2 * E4m3Words::kUnit;
    bool fits = true;
    for (int i = 0; i < kTerms; ++i) {
      fits &= terms[i] < kEnd;  // False for NaN.
    }
    if (fits) {
      look_up_row(codes, terms, to);
    } else {
      multiply_row(codes, terms, to);
    }
  }

 private:
  [[gnu::always_inline]] static void look_up_row(
      const std::byte* codes, const float* terms, std::byte* to
  ) {
    unroll<kChunkSteps / 2>([&](auto pair) {
      const auto* at = reinterpret_cast<const std::uint32_t*>(codes + pair.kValue * 64);
      const E4m3Words words(load_u32(at));
      unroll<2>([&](auto half) {
        constexpr int kStep = 2 * pair.kValue + half.kValue;
        store_u32(
            reinterpret_cast<std::uint32_t*>(to + kStep * kTileBytes),
            words.times<half.kValue>(terms[kStep])
        );
      });
    });
  }

  static void multiply_row(const std::byte* codes, const float* terms, std::byte* to) {
    unroll<kChunkSteps>([&](auto step) {
      constexpr int kQuarter = step.kValue % 2 * 2;  // Within 64 codes.
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
