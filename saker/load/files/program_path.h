// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

namespace saker::load {

// The running program, with links resolved; empty if the system doesn't tell.
std::filesystem::path program_path();

// The file that holds this code: the program, or a shared library in it. Empty if the system doesn't
// tell.
std::filesystem::path library_path();

}  // namespace saker::load
