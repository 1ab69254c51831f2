// SPDX-License-Identifier: Apache-2.0
#pragma once

// Memory of the pages of all caches of the process. Beyond 8 MB, pages are cut from buffers of 8
// MB, which get huge pages where the system has them at hand: attention streams through all of it,
// and a page of a cache is too small for a huge page of its own. A buffer whose pages are all free
// goes back to the system, but for one of each size of page. Any thread.

#include <cstddef>

namespace saker::kernels {

// Not filled, 64-byte aligned. Throws std::bad_alloc.
std::byte* take_page(std::size_t bytes);

// Of the size that was taken.
void give_page_back(std::byte* page, std::size_t bytes) noexcept;

}  // namespace saker::kernels
