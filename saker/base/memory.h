// SPDX-License-Identifier: Apache-2.0
#pragma once

// The machine's memory, what this process uses of it, and errors for want of it.

#include <cstddef>
#include <exception>
#include <optional>
#include <string_view>

namespace saker {

// The largest resident set so far, mapped file pages included, in bytes.
std::size_t peak_memory_bytes();

// What the machine has, or less where the process is in a container with a limit; SIZE_MAX where
// neither says.
std::size_t usable_memory_bytes();

// Lets the C library keep up to so much freed memory for what any thread allocates next. Else the
// arrays of each pass are given back to the system, and come back page by page, cleared, in the
// next one. For programs, before they start threads, since it holds for the whole process. Returns
// whether there is such a setting (glibc).
bool keep_freed_memory(int bytes);

// A line for people where the machine had no more memory (std::bad_alloc, a buffer's kCapacity, or
// the same from a thread or allocator of MLX, which gives the text only) or no more threads to
// give; none for other errors.
std::optional<std::string_view> out_of_memory_reason(const std::exception& error);

}  // namespace saker
