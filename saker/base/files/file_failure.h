// SPDX-License-Identifier: Apache-2.0
#pragma once

// Messages for errors of the C++ library's file functions.

#include <exception>
#include <optional>
#include <string>

namespace saker {

// A line that names the file and the system's reason, if a function of std::filesystem or a stream
// failed. Empty for other errors.
std::optional<std::string> file_failure(const std::exception& error);

}  // namespace saker
