// SPDX-License-Identifier: Apache-2.0
#pragma once

// A question on a terminal that Ctrl-C can end, even while an InterruptWatcher handles the signal.

#include <stop_token>
#include <string>

namespace saker::cli {

// True if standard input and standard error are terminals.
bool can_ask();

// Prints the question and waits for a line. True for an empty one, "y" and "yes"; false at the end
// of input. Throws kCancelled once a stop is requested.
bool ask_yes(const std::string& question, const std::stop_token& stop);

}  // namespace saker::cli
