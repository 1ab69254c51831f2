// SPDX-License-Identifier: Apache-2.0
#pragma once

// Blocks of the GGUF types that have no kernels of their own, as codes and scales for sixteen
// columns each (https://github.com/ggml-org/ggml, ggml-common.h and ggml-quants.c).

#include "saker/load/gguf/blocks/gguf_types.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace saker::load::gguf {

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
