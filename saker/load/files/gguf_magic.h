// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

namespace saker::load {

// True for a regular file that begins as GGUF files do, whatever its name.
bool has_gguf_magic(const std::filesystem::path& path);

// True for a regular file that is one by its name or by its first bytes.
bool looks_like_gguf(const std::filesystem::path& path);

}  // namespace saker::load
