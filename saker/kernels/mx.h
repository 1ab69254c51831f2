// SPDX-License-Identifier: Apache-2.0
#pragma once

// The one place that names MLX's namespace. All our MLX calls go through folders that include this
// header.

#include "mlx/mlx.h"

#include <cstddef>
#include <new>

namespace saker {

namespace mx = mlx::core;

namespace kernels {

// MLX's memory for an array, not filled. Throws std::bad_alloc, where MLX itself gives null on CPU.
inline mx::allocator::Data mx_memory(std::size_t bytes) {
  auto memory = mx::allocator::malloc(bytes);
  if (bytes > 0 && memory.buffer().ptr() == nullptr) {
    throw std::bad_alloc();
  }
  return memory;
}

// Gives an array memory of its own, not filled. Throws std::bad_alloc.
inline void give_memory(mx::array& x) {
  x.set_data(mx_memory(x.nbytes()));
}

}  // namespace kernels
}  // namespace saker
