// SPDX-License-Identifier: Apache-2.0
#pragma once

// The model's part of cached rows' keys, as a text. It covers all bytes of configuration and
// weights, the build with its kernels, and the instruction set.

#include <filesystem>
#include <string>

namespace saker::load {

// Reads all weight files. Throws kNotFound for files that cannot be read.
std::string model_identity(const std::filesystem::path& model_dir);

}  // namespace saker::load
