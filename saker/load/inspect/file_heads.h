// SPDX-License-Identifier: Apache-2.0
#pragma once

// Weight files of which only the beginning is known: how much of it inspection needs, and writing
// such files to disk.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>

namespace saker::load {

// Bytes that hold the header of a safetensors or GGUF file (told by `name`) of `file_bytes` bytes,
// given its beginning. A result of at most `begin.size()` means that `begin` is enough. Throws
// kCorruptData if no such file begins so.
std::uintmax_t bytes_of_header(
    std::string_view name, std::span<const std::byte> begin, std::uintmax_t file_bytes
);

// Writes a new file of that size with this beginning; the rest is a hole. Throws kCapacity if the
// file system refuses.
void write_file_head(
    const std::filesystem::path& path, std::string_view begin, std::uintmax_t file_bytes
);

}  // namespace saker::load
