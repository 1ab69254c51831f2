// SPDX-License-Identifier: Apache-2.0
#pragma once

// The GGUF tensor types that we read: block sizes and values
// (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md, ggml's ggml-common.h and
// ggml-quants.c). Most are w = scale * code + bias over 32 weights. That is MLX's affine layout
// with groups of 32, which keeps every weight exactly. Types without kernels of their own become
// wider blocks, or that layout, wherever these hold each weight. Host memory only; safe to call
// from any thread.

#include "saker/base/tensor.h"
#include "saker/kernels/layout/block_format.h"
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
  kQ2K = 10,
  kQ3K = 11,
  kQ4K = 12,
  kQ5K = 13,
  kQ6K = 14,
  kIq2Xxs = 16,
  kIq2Xs = 17,
  kIq3Xxs = 18,
  kIq1S = 19,
  kIq4Nl = 20,
  kIq3S = 21,
  kIq2S = 22,
  kIq4Xs = 23,
  kIq1M = 29,
  kBFloat16 = 30,
  kTq10 = 34,
  kTq20 = 35,
  kMxfp4 = 39,
  kNvfp4 = 40,
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
// file, or float32 if a scale is a product of the file's. Empty for plain numbers and for types
// whose scales cover 16 weights, such as Q6_K.
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

// The blocks that products read (kernels/layout/block_format.h) and that hold each weight of the
// type: its own, or wider ones. Empty if there are none.
std::optional<kernels::BlockKind> block_kind(TensorType type);

// True if those are the type's own.
bool has_own_blocks(TensorType type);

// Converts blocks to those. REQUIRES: block_kind(type), `count` is a multiple of the type's block.
void to_blocks(TensorType type, const std::byte* from, std::size_t count, std::byte* to);

// MLX's format of small floats with the type's numbers: MXFP4 and NVFP4.
std::optional<kernels::WeightFormat> small_float_format(TensorType type);

// Converts blocks to codes and scales of that format; every weight keeps its value.
// REQUIRES: fits_small_floats().
void to_small_floats(
    TensorType type, const std::byte* from, std::size_t count, std::byte* codes, std::byte* scales
);

// True if all scales mean the same in both, as in valid files.
bool fits_small_floats(TensorType type, const std::byte* from, std::size_t count);

// Values as float32, rounded as in ggml. REQUIRES: `count` is a multiple of the type's block.
void to_floats(TensorType type, const std::byte* from, std::size_t count, float* to);

}  // namespace saker::load::gguf
