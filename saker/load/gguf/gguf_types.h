// SPDX-License-Identifier: Apache-2.0
#pragma once

// The GGUF tensor types that we read: block sizes and values
// (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md, ggml's ggml-common.h and
// ggml-quants.c). Most are w = scale * code + bias over 32 weights. That is MLX's affine layout
// with groups of 32, which keeps every weight exactly. Host memory only; safe to call from any
// thread.

#include "saker/base/tensor.h"
#include "saker/kernels/layout/weight_format.h"
#include "saker/kernels/quantize/quantize_loops.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace saker::load::gguf {

enum class TensorType : std::uint8_t {
  kFloat32 = 0,
  kFloat16 = 1,
  kQ40 = 2,
  kQ41 = 3,
  kQ50 = 6,
  kQ51 = 7,
  kQ80 = 8,
  kQ4K = 12,
  kQ5K = 13,
  kQ6K = 14,
  kBFloat16 = 30,
};

struct TypeFacts {
  TensorType type;
  std::string_view name;
  std::int64_t block = 1;       // Values of a block.
  std::size_t block_bytes = 0;  // Bytes of a block.
};

// Null for types that we don't read.
const TypeFacts* find_type(std::uint32_t number);
const TypeFacts& facts_of(TensorType type);
// The name of any GGUF type, past or present; "type 99" for unknown numbers.
std::string type_name(std::uint32_t number);
// A list for messages: "F32, F16, Q4_0, ..."
std::string supported_types();

// The dtype of plain numbers; empty for blocks of codes.
std::optional<DType> plain_dtype(TensorType type);

// MLX's layout for the type, and the dtype of its scales and biases. That is float16 as in the
// file, or float32 if a scale is a product of the file's. Empty for plain numbers and for Q6_K,
// whose scales cover 16 weights.
struct AffineLayout {
  kernels::WeightFormat format;
  DType scales = DType::kFloat16;
};

std::optional<AffineLayout> affine_layout(TensorType type);

// Converts blocks to that layout; every weight keeps its value. REQUIRES: the type has such a
// layout, `count` is a multiple of its block.
void to_affine(
    TensorType type, const std::byte* from, std::size_t count, const kernels::QuantizedBytes& to
);

// True if all scales and biases are finite in that layout, as in valid files.
bool fits_affine(TensorType type, const std::byte* from, std::size_t count);

// Values as float32, rounded as in ggml. REQUIRES: `count` is a multiple of the type's block.
void to_floats(TensorType type, const std::byte* from, std::size_t count, float* to);

}  // namespace saker::load::gguf
