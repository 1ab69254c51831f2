// SPDX-License-Identifier: Apache-2.0
#pragma once

// The chat on a terminal: lines in, answers streamed, commands with '/'.

#include "saker/cli/chat/chat.h"
#include "saker/cli/chat/chat_model.h"
#include "saker/cli/interrupt.h"

namespace saker::cli {

// Ctrl-C stops the answer that is being written; at the prompt it clears the line, twice in a row
// or Ctrl-D leaves.
int run_repl(Chat& chat, const LoadChatModel& load, InterruptWatcher& watcher);

}  // namespace saker::cli
