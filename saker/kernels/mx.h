// SPDX-License-Identifier: Apache-2.0
#pragma once

// The one place that names MLX's namespace. All our MLX calls go through folders that include this
// header.

#include "mlx/mlx.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

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

// Gives an array memory of its own, not filled, from the begin of a cache line on: MLX's begins 8
// bytes behind a multiple of 16, so that each vector of 64 bytes would lie in two lines. Throws
// std::bad_alloc.
inline void give_memory(mx::array& x) {
  constexpr std::size_t kLineBytes = 64;
  auto memory = mx_memory(x.nbytes() + kLineBytes);
  const auto at = reinterpret_cast<std::uintptr_t>(memory.buffer().raw_ptr());
  const std::size_t offset = (kLineBytes - at % kLineBytes) % kLineBytes / x.itemsize();
  const auto longest = std::ranges::max_element(x.shape());
  const bool is_one_column = x.size() <= 1 || static_cast<std::size_t>(*longest) == x.size();
  x.set_data(
      std::move(memory),
      x.size(),
      x.strides(),
      {.contiguous = true, .row_contiguous = true, .col_contiguous = is_one_column},
      static_cast<std::int64_t>(offset)
  );
}

}  // namespace kernels
}  // namespace saker
