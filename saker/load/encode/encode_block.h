// SPDX-License-Identifier: Apache-2.0
#pragma once

// Rows of float32 as blocks of GGUF types, with the bytes of ggml_quantize_chunk
// (https://github.com/ggml-org/ggml, ggml-quants.c) as built for x86-64 without fused
// multiplications. Host memory only, no allocation. Safe to call from any thread: rows do not
// depend on each other.
//
// Values that overflow a type's float16 scale encode to infinite weights, as in ggml. Two cases
// differ:
//   MXFP4   ggml leaves the exponent undefined if a block's largest value is below 2^-125; here it
//           is 0
//   IQ4     from about 10^10 on sums overflow, a scale is NaN, and the codes differ among versions
//           of ggml; here they are 0

#include "saker/load/gguf/blocks/gguf_types.h"

#include <cstddef>
#include <span>

namespace saker::load::gguf {

// True for types that encode_row() writes.
bool can_encode(TensorType type);

// Encodes a row as ggml's quantize does, to the bit. `importance` has one weight per column, or is
// empty; types without a weighted search ignore it. Writes row.size() / block * block_bytes bytes.
// REQUIRES: can_encode(type); row.size() is a multiple of the type's block; importance is empty or
// as long as the row. Values that are not finite give unspecified bytes.
void encode_row(
    TensorType type, std::span<const float> row, std::span<const float> importance, std::byte* to
);

}  // namespace saker::load::gguf
