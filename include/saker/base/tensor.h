// SPDX-License-Identifier: Apache-2.0
#pragma once

// A read-only tensor in host memory, usually a view into a mapped checkpoint file: dtype, shape and
// bytes, row-major. It does not use MLX: readers make it, kernels pack it. Copies are cheap and
// share the memory. Any thread may read.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace saker {

enum class DType : std::uint8_t {
  kFloat32,
  kFloat16,
  kBFloat16,
  kUInt32,  // Packed words of quantized weights.
  kUInt8,   // E8M0 and E4M3 scales.
  kInt32,
  kInt64,
  kInt16,
  kInt8,
  kUInt16,
  kUInt64,
  kFloat64,
  kBool,
  kFloat8E4M3,  // Codes of checkpoints; there is no arithmetic on them.
};

// Bytes of one element.
std::size_t dtype_size(DType dtype);

// The name that safetensors files use: "F32", "BF16", "U32", ...
std::string_view dtype_name(DType dtype);

// The name of a float type in configurations: "float32", "float16" or "bfloat16".
std::string_view float_name(DType dtype);

struct Tensor {
  DType dtype = DType::kFloat32;
  std::vector<std::int64_t> shape;
  // First byte; keeps the mapping alive. Aligned as in the file: read unaligned.
  std::shared_ptr<const std::byte> data;
  // Called when bytes are copied elsewhere, so that mapped pages may leave memory; they can still be
  // read. May be empty.
  std::function<void()> release;

  std::int64_t element_count() const;
  std::size_t nbytes() const;

  std::span<const std::byte> bytes() const { return {data.get(), nbytes()}; }
};

// "[2, 3]"
std::string shape_text(std::span<const std::int64_t> shape);

// Elements as float32. Throws kCorruptData for types that are not floats.
std::vector<float> to_floats(const Tensor& tensor);

}  // namespace saker
