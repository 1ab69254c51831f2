// SPDX-License-Identifier: Apache-2.0
#pragma once

// Pages of mapped files.

#include <cstddef>

namespace saker::kernels {

// True if this process waited for pages of files since the thread asked last.
bool finds_pages_cold() noexcept;

// Asks the system to read these bytes from their file soon. Does not wait, and changes no content.
void will_need(const std::byte* data, std::size_t bytes) noexcept;

}  // namespace saker::kernels
