// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace saker::cli {

// Running out of memory or threads ends the program with an "error:" line and exit code 1. This
// includes places where no exception may pass: destructors, and a library's threads. Other errors
// there are unchanged. Applies to the whole process, so only the program itself uses it.
void explain_out_of_memory_anywhere();

}  // namespace saker::cli
