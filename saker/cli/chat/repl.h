// SPDX-License-Identifier: Apache-2.0
#pragma once

// The chat on a terminal: reads lines, streams answers, runs commands with '/'.

#include "saker/cli/chat/chat.h"
#include "saker/cli/chat/chat_model.h"
#include "saker/cli/io/interrupt.h"

namespace saker::cli {

// Ctrl-C stops an answer in progress. At the prompt it clears the line; Ctrl-C twice in a row, or
// Ctrl-D, ends the chat.
int run_repl(Chat& chat, const LoadChatModel& load, InterruptWatcher& watcher);

}  // namespace saker::cli
