// SPDX-License-Identifier: Apache-2.0
#pragma once

// Files of weights of which only the beginning is there: how much of it inspection needs, and such
// files on a disk.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>

namespace saker::load {

// Bytes from the first one on that hold the header of a safetensors or GGUF file, told by its name,
// of `file_bytes`, given those that are there. No more than these: they are enough. Throws
// kCorruptData where they begin no such file.
std::uintmax_t bytes_of_header(
    std::string_view name, std::span<const std::byte> begin, std::uintmax_t file_bytes
);

// A new file of that size that begins so, the rest a hole. Throws kCapacity where the file system
// takes no such file.
void write_file_head(
    const std::filesystem::path& path, std::string_view begin, std::uintmax_t file_bytes
);

}  // namespace saker::load
