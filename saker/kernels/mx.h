// SPDX-License-Identifier: Apache-2.0
#pragma once

// Names MLX's namespace, in this one place. Folders that call MLX include this header.

#include "mlx/mlx.h"

#include <cstddef>
#include <new>

namespace saker {

namespace mx = mlx::core;

namespace kernels {

// Memory from MLX for an array, not filled. Throws std::bad_alloc, where MLX on CPU returns null.
inline mx::allocator::Data mx_memory(std::size_t bytes) {
  auto memory = mx::allocator::malloc(bytes);
  if (bytes > 0 && memory.buffer().ptr() == nullptr) {
    throw std::bad_alloc();
  }
  return memory;
}

// Allocates memory for an array, not filled. Throws std::bad_alloc.
inline void give_memory(mx::array& x) {
  x.set_data(mx_memory(x.nbytes()));
}

}  // namespace kernels
}  // namespace saker
