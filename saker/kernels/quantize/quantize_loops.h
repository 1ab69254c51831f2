// SPDX-License-Identifier: Apache-2.0
#pragma once

// Converts weights to MLX's quantized layout and back, with the bits of mlx.core.quantize and
// mlx.core.dequantize on the CPU. Every intermediate value is rounded as in MLX, to the dtype of
// the weights where MLX computes in that dtype. Compiled for several instruction sets; all give the
// same bits, the best one runs. Host memory only. Safe to call from any thread.
//
// Codes are a stream of bits, the first code in the lowest bits.
//   affine         w = scale * code + bias, both in the weights' dtype; one end of a group's range
//                  is met exactly
//   mxfp4, mxfp8   scale 2^e (E8M0), e = ceil(log2(max |w| / largest code))
//   nvfp4          scale (E4M3) = max |w| / 6
// Codes are the nearest ones, ties to even (affine, E4M3) or to zero (E2M1). NaN and infinity have
// no code: the result for their group is undefined. With nvfp4, whose scales end at 448, MLX gives
// weights beyond 10^9 other codes.

#include "saker/base/tensor.h"
#include "saker/kernels/layout/weight_format.h"

#include <cstddef>
#include <cstdint>

namespace saker::kernels {

// The bytes of whole groups, which follow each other.
struct QuantizedBytes {
  std::byte* codes = nullptr;
  std::byte* scales = nullptr;
  std::byte* biases = nullptr;  // Affine only.
};

struct QuantizedView {
  const std::byte* codes = nullptr;
  const std::byte* scales = nullptr;
  const std::byte* biases = nullptr;  // Affine only.
  DType dtype = DType::kBFloat16;     // Dtype of scales and biases; affine only.
};

// Scale and bias of affine codes.
struct AffineLine {
  float scale;
  float bias;
};

// Dtypes are float32, float16 or bfloat16; `count` is a number of values.
struct QuantizeLoops {
  // `from` and `to` may have any alignment.
  void (*widen)(const std::byte* from, DType dtype, std::size_t count, float* to);
  // To nearest, ties to even.
  void (*narrow)(const float* from, DType dtype, std::size_t count, std::byte* to);
  // `values` are numbers of `dtype`. REQUIRES: whole groups, and a quantized format that MLX
  // supports.
  void (*encode)(
      const WeightFormat& format,
      DType dtype,
      const float* values,
      std::size_t count,
      const QuantizedBytes& to
  );
  // `values` become numbers of `dtype`. REQUIRES: as `encode`.
  void (*decode)(
      const WeightFormat& format,
      DType dtype,
      const QuantizedView& from,
      std::size_t count,
      float* values
  );
  // Encodes one affine group of `count` values, a multiple of 16 up to 128. First rounds the values
  // to `dtype`, at the end the line too. Writes one byte per code.
  AffineLine (*encode_group)(
      DType dtype, int bits, const float* values, std::size_t count, std::uint8_t* codes
  );
};

const QuantizeLoops& quantize_loops();

}  // namespace saker::kernels
