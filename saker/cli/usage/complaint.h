// SPDX-License-Identifier: Apache-2.0
#pragma once

// Explains an invalid command line in one line: the input, the expectation, and the nearest valid
// name.

#include "saker/cli/usage/typed_line.h"

#include <CLI/CLI.hpp>

#include <string>

namespace saker::cli {

// REQUIRES: `error` is not a request for help or the version.
std::string complaint(const TypedLine& line, const CLI::ParseError& error);

}  // namespace saker::cli
