// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace saker::kernels {

// "Bits" of cached rows that are kept as they are, in bf16 or float32.
inline constexpr int kUnquantizedBits = 16;

// What cached rows can be quantized to.
constexpr bool is_kv_bits(int bits) {
  return bits == 4 || bits == 8 || bits == kUnquantizedBits;
}

}  // namespace saker::kernels
