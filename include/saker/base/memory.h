// SPDX-License-Identifier: Apache-2.0
#pragma once

// The machine's memory, this process's use of it, and out-of-memory errors.

#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <string_view>

namespace saker {

// The largest resident set so far, mapped file pages included, in bytes.
std::size_t peak_memory_bytes();

// Pages that this process waited for because they had to be read from a file, so far: its major
// page faults.
std::int64_t cold_faults();

// The machine's memory, or the container's limit if that is less. SIZE_MAX if neither is known.
std::size_t usable_memory_bytes();

// Lets the C library keep up to `bytes` of freed memory for later allocations of any thread.
// Without it, the arrays of each pass are returned to the system and come back in the next pass,
// page by page and cleared. Applies to the whole process: call it before threads start. Returns
// true if there is such a setting (glibc).
bool keep_freed_memory(int bytes);

// Returns memory that the C library keeps to the system (glibc). Takes a few milliseconds; for the
// end of work that took much more memory than it leaves.
void return_freed_memory();

// A line for people if memory or threads ran out, empty for other errors. Recognizes
// std::bad_alloc, a buffer's kCapacity, and the texts of these errors from MLX's threads and
// allocators.
std::optional<std::string_view> out_of_memory_reason(const std::exception& error);

}  // namespace saker
