// SPDX-License-Identifier: Apache-2.0
#pragma once

// Arrays from numbers on the host. MLX's own constructor copies into its CPU allocator's memory
// without checking that there is any.

#include "saker/kernels/mx.h"

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

namespace saker::nn {

// Copies as many elements as `shape` has. Throws std::bad_alloc.
template <typename T>
  requires std::same_as<T, float> || std::same_as<T, std::int32_t>
mx::array host_array(const T* data, mx::Shape shape) {
  std::size_t bytes = sizeof(T);
  for (const int size : shape) {
    bytes *= static_cast<std::size_t>(size);
  }
  const mx::Dtype dtype = std::same_as<T, float> ? mx::float32 : mx::int32;
  mx::array result(kernels::mx_memory(bytes), std::move(shape), dtype);
  if (bytes > 0) {
    std::memcpy(result.data<T>(), data, bytes);
  }
  return result;
}

}  // namespace saker::nn
