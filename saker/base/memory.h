// SPDX-License-Identifier: Apache-2.0
#pragma once

// What this process uses of the machine's memory.

#include <cstddef>

namespace saker {

// The largest resident set so far, mapped file pages included, in bytes.
std::size_t peak_memory_bytes();

}  // namespace saker
