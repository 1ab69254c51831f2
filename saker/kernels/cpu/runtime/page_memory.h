// SPDX-License-Identifier: Apache-2.0
#pragma once

// Memory for the pages of all caches of the process. Beyond 8 MiB in total, pages are cut from
// buffers of 8 MiB, which get huge pages where the system has some ready. Attention streams through
// all of it, and a single page is too small for a huge page. A buffer whose pages are all free goes
// back to the system, except one per page size. Safe on any thread.

#include <cstddef>

namespace saker::kernels {

// Takes a page: not filled, 64-byte aligned. Throws std::bad_alloc.
std::byte* take_page(std::size_t bytes);

// Returns a page. REQUIRES: `bytes` as given to take_page.
void give_page_back(std::byte* page, std::size_t bytes) noexcept;

}  // namespace saker::kernels
