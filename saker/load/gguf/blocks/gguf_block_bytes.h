// SPDX-License-Identifier: Apache-2.0
#pragma once

// Numbers in the bytes of GGUF's blocks. Any thread.

#include "saker/base/tensor.h"
#include "saker/kernels/quantize/quantize_loops.h"

#include <cstddef>

namespace saker::load::gguf {

inline unsigned byte_at(const std::byte* at) {
  return std::to_integer<unsigned>(*at);
}

// The float16 there.
inline float half_at(const std::byte* at) {
  float value = 0.0F;
  kernels::quantize_loops().widen(at, DType::kFloat16, 1, &value);
  return value;
}

}  // namespace saker::load::gguf
