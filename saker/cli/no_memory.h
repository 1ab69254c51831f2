// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace saker::cli {

// A shortage of memory or threads where no exception may pass, in a destructor or on a thread of a
// library, ends the program with an "error:" line and exit code 1, as everywhere else. Other errors
// there stay what they are. Holds for the whole process, so that only the program asks for it.
void explain_out_of_memory_anywhere();

}  // namespace saker::cli
