// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the system tells programs of files by signals, told to people as errors instead. Holds for
// the whole process, so that only the program asks for it.

namespace saker::cli {

// A file that may not grow further (ulimit -f) is an error of the write, not a signal.
void fail_large_writes();

// Reading a mapped file that was cut short meanwhile, or whose disk fails, ends the program with an
// "error:" line that names the file, and exit code 1. What is being written stays unfinished, as
// when the program is killed.
void explain_lost_files();

}  // namespace saker::cli
