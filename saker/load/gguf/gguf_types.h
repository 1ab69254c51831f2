// SPDX-License-Identifier: Apache-2.0
#pragma once

// The types of GGUF's tensors that we read: their blocks' sizes, and their values
// (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md, ggml's ggml-common.h and
// ggml-quants.c). Most are w = scale * code + bias over 32 weights, which is MLX's affine layout
// with groups of 32: those keep every weight. Host memory only, safe to call from any thread.

#include "saker/base/tensor.h"
#include "saker/kernels/quantize/quantize_loops.h"
#include "saker/kernels/weight_format.h"

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
  std::int64_t block = 1;       // Values.
  std::size_t block_bytes = 0;  // Of them.
};

// None for types that we don't read.
const TypeFacts* find_type(std::uint32_t number);
const TypeFacts& facts_of(TensorType type);
// Of any type that GGUF has had, "type 99" for others.
std::string type_name(std::uint32_t number);
// "F32, F16, Q4_0, ..."
std::string supported_types();

// Of plain numbers; none for blocks of codes.
std::optional<DType> plain_dtype(TensorType type);

// The layout of MLX that holds the type, and the dtype of its scales and biases: float16 as in the
// file, float32 where a scale is a product of the file's. None for Q6_K, whose scales are over 16
// weights, and for plain numbers.
struct AffineLayout {
  kernels::WeightFormat format;
  DType scales = DType::kFloat16;
};

std::optional<AffineLayout> affine_layout(TensorType type);

// Blocks in that layout; every weight stays what it was. REQUIRES: a type that has one, `count` a
// multiple of its block.
void to_affine(
    TensorType type, const std::byte* from, std::size_t count, const kernels::QuantizedBytes& to
);

// Whether all scales and biases are finite in that layout, as those of sound files are.
bool fits_affine(TensorType type, const std::byte* from, std::size_t count);

// Values as float32, as ggml rounds them. REQUIRES: `count` a multiple of the type's block.
void to_floats(TensorType type, const std::byte* from, std::size_t count, float* to);

}  // namespace saker::load::gguf
