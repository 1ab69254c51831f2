// SPDX-License-Identifier: Apache-2.0
#pragma once

// Errors of the C++ library's file functions, as people read them.

#include <exception>
#include <optional>
#include <string>

namespace saker {

// A line that names the file and what the system says of it, where a function of std::filesystem or
// a stream failed; none for other errors.
std::optional<std::string> file_failure(const std::exception& error);

}  // namespace saker
