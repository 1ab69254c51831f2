// SPDX-License-Identifier: Apache-2.0
#pragma once

// The machine's memory and what this process uses of it.

#include <cstddef>

namespace saker {

// The largest resident set so far, mapped file pages included, in bytes.
std::size_t peak_memory_bytes();

// Of the machine; SIZE_MAX where it does not say.
std::size_t physical_memory_bytes();

}  // namespace saker
