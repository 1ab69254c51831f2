// SPDX-License-Identifier: Apache-2.0
#pragma once

// Blocks of the GGUF types that have no kernels of their own, as codes and scales for sixteen
// columns each (https://github.com/ggml-org/ggml, ggml-common.h and ggml-quants.c).

#include "saker/base/tensor.h"
#include "saker/kernels/quantize/quantize_loops.h"
#include "saker/load/gguf/gguf_types.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace saker::load::gguf {

// Numbers in the bytes of blocks.
inline unsigned byte_at(const std::byte* at) {
  return std::to_integer<unsigned>(*at);
}

// The float16 there.
inline float half_at(const std::byte* at) {
  float value = 0.0F;
  kernels::quantize_loops().widen(at, DType::kFloat16, 1, &value);
  return value;
}

inline constexpr std::size_t kCodedGroup = 16;
inline constexpr std::size_t kMostCodes = 256;

// Weight i is scales[i / 16] * codes[i] + biases[i / 16]. Scales and products are exact.
struct CodedBlock {
  std::array<std::int8_t, kMostCodes> codes;
  std::array<float, kMostCodes / kCodedGroup> scales;
  std::array<float, kMostCodes / kCodedGroup> biases;  // Zeros but for Q2_K.
  // For types whose scales are factor * integers: the factor's float16 in the file.
  const std::byte* factor = nullptr;
  std::array<std::int8_t, kMostCodes / kCodedGroup> integers;
};

// True for types that read_coded_block() reads.
bool is_coded(TensorType type);

// REQUIRES: is_coded(type), `block` has the type's bytes. Fills as many codes as a block has.
void read_coded_block(TensorType type, const std::byte* block, CodedBlock& to);

}  // namespace saker::load::gguf
