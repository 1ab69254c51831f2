// SPDX-License-Identifier: Apache-2.0
#pragma once

// What rows of a cache depend on besides tokens and request, as a text for keys of files: all bytes
// of configuration and weights, the build with its kernels, the instruction set they use.

#include <filesystem>
#include <string>

namespace saker::engine {

// Reads all weight files. Throws kNotFound for files that cannot be read.
std::string model_identity(const std::filesystem::path& model_dir);

}  // namespace saker::engine
