// SPDX-License-Identifier: Apache-2.0
#pragma once

// Turns the system's signals about files into error messages. Applies to the whole process, so only
// the program itself uses it.

namespace saker::cli {

// A file that reaches its size limit (ulimit -f) fails the write instead of sending a signal.
void fail_large_writes();

// Reading a mapped file that was cut short, or whose disk fails, ends the program. It prints an
// "error:" line that names the file; the exit code is 1. Output under way stays unfinished, as when
// the program is killed.
void explain_lost_files();

}  // namespace saker::cli
