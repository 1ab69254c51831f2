// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

namespace saker::load {

// The running program, with links resolved; empty if the system doesn't tell.
std::filesystem::path program_path();

}  // namespace saker::load
