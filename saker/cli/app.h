// SPDX-License-Identifier: Apache-2.0
// The program's front: parses the command line, runs one command, turns errors into exit codes
// (0 success, 1 failure with one line on stderr, 2 wrong usage).
#pragma once

namespace saker::cli {

int run(int argc, char** argv);

}  // namespace saker::cli
