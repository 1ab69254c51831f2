// SPDX-License-Identifier: Apache-2.0
#pragma once

// Memory for packed weights, aligned to a cache line; its content starts undefined.
//
// Most weights of a model are too small to fill huge pages of their own, but a pass streams through
// all of them. So weights that are allocated one after the other share slabs of huge pages. A slab
// is freed with its last weight. Safe to call from any thread.

#include <cstddef>
#include <memory>

namespace saker::kernels {

// Throws kCapacity when out of memory.
std::shared_ptr<std::byte> allocate_weight_bytes(std::size_t size);

}  // namespace saker::kernels
