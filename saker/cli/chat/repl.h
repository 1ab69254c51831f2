// SPDX-License-Identifier: Apache-2.0
#pragma once

// The chat on a terminal: lines in, answers streamed, commands with '/'.

#include "saker/cli/chat/conversation.h"
#include "saker/cli/interrupt.h"
#include "saker/engine/engine.h"

namespace saker::cli {

// Ctrl-C stops the answer that is being written; at the prompt it clears the line, twice in a row
// or Ctrl-D leaves.
int run_repl(Conversation& conversation, engine::Engine& engine, InterruptWatcher& watcher);

}  // namespace saker::cli
