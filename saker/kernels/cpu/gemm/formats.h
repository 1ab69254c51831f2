// SPDX-License-Identifier: Apache-2.0
#pragma once

// How the products of one instruction set read packed weights. A step loads one word per lane and
// gives operands; each stands for one k (float32) or a pair of k (bf16). See packed_matrix.h for
// the words.

#include "saker/kernels/cpu/dispatch/linear_bodies.h"
#include "saker/kernels/cpu/gemm/byte_formats.h"
#include "saker/kernels/cpu/gemm/narrow_formats.h"
#include "saker/kernels/cpu/gemm/operands.h"
#include "saker/kernels/layout/packed_matrix.h"

namespace saker::kernels::SAKER_ISA {

struct Float32Format {
  static constexpr Codes kCodes = Codes::kNone;
  using Operand = FloatOperand;
  using Word = F32x16;
  static constexpr int kStepBytes = 64;
  static constexpr int kOperands = 1;  // Per step.

  static Word load_word(const std::byte* p) { return load(reinterpret_cast<const float*>(p)); }

  template <int index>
  static F32x16 operand(Word word) {
    return word;
  }
};

struct Float16Format {
  static constexpr Codes kCodes = Codes::kNone;
  using Operand = FloatOperand;
  using Word = F32x16;
  static constexpr int kStepBytes = 32;
  static constexpr int kOperands = 1;

  static Word load_word(const std::byte* p) {
    return load_f16(reinterpret_cast<const std::uint16_t*>(p));
  }

  template <int index>
  static F32x16 operand(Word word) {
    return word;
  }
};

#if defined(SAKER_IN_PLACE)
// bf16 weights lie in rows, in packed memory or the checkpoint's, and have their own products: see
// cpu/gemm/bf16_panels.h.
struct BFloat16Format {
  static std::size_t row_bytes(const PackedMatrix& weight);  // Per prepared row of x.
  static void prepare(
      const PackedMatrix& weight,
      const InputRows& x,
      const MicroPanels& micro_panels,
      int micro_panel,
      std::byte* prepared
  );
  static void multiply(const PackedMatrix& weight, const LinearTile& tile);
};

inline constexpr bool kInPlace = true;
inline constexpr PackedOrder kBf16Order = PackedOrder::kTileOrder;
#else
struct BFloat16Format {
  static constexpr Codes kCodes = Codes::kNone;
  using Operand = Bf16Operand;
  using Word = U32x16;
  static constexpr int kStepBytes = 64;
  static constexpr int kOperands = 2 / Operand::kPerOperand;
  static constexpr int kPairDistance = 1;

  static Word load_word(const std::byte* p) {
    return load_u32(reinterpret_cast<const std::uint32_t*>(p));
  }

  template <int index>
  static auto operand(Word word) {
    if constexpr (Operand::kPerOperand == 2) {
      return word;
    } else if constexpr (index == 0) {
      return even_bf16(word);
    } else {
      return odd_bf16(word);
    }
  }
};

inline constexpr bool kInPlace = false;
inline constexpr PackedOrder kBf16Order = PackedOrder::kInterleavedNr16;
#endif

inline F32x16 load_scales(ScaleKind kind, const std::byte* p) {
  switch (kind) {
    case ScaleKind::kBFloat16:
      return load_bf16(reinterpret_cast<const std::uint16_t*>(p));
    case ScaleKind::kFloat16:
      return load_f16(reinterpret_cast<const std::uint16_t*>(p));
    default:
      return load(reinterpret_cast<const float*>(p));
  }
}

// Calls function with the format of a weight that is neither of narrow codes nor of small floats.
template <typename Function>
[[gnu::always_inline]] inline auto with_format(const PackedMatrix& weight, Function function) {
  switch (weight.kind) {
    case PackedKind::kFloat16:
      return function(Float16Format());
    case PackedKind::kBFloat16:
      return function(BFloat16Format());
    case PackedKind::kNibble:
      return function(NibbleFormat());
    case PackedKind::kByte:
      return function(ByteFormat());
    default:
      return function(Float32Format());
  }
}

}  // namespace saker::kernels::SAKER_ISA
