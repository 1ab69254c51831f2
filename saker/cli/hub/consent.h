// SPDX-License-Identifier: Apache-2.0
#pragma once

// A question on a terminal that Ctrl-C can end, though an InterruptWatcher keeps the signal from
// reading calls.

#include <stop_token>
#include <string>

namespace saker::cli {

// Whether somebody can be asked: standard input and standard error are terminals.
bool can_ask();

// Prints the question and waits for a line: yes for an empty one, "y" and "yes". No at the end of
// the input. Throws kCancelled once a stop is requested.
bool ask_yes(const std::string& question, const std::stop_token& stop);

}  // namespace saker::cli
