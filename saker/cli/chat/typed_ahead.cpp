// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/chat/typed_ahead.h"

#include "saker/cli/chat/terminal.h"

#include <unistd.h>

#include <cerrno>

namespace saker::cli {
namespace {

// Also a signal handler: a shell that continues a stopped program has set the terminal its own way.
// In the background we must not change the terminal.
void stop_echo(int /*signal*/) {
  const int before = errno;
  termios now{};
  if (tcgetpgrp(STDIN_FILENO) == getpgrp() && tcgetattr(STDIN_FILENO, &now) == 0) {
    now.c_lflag &= ~static_cast<tcflag_t>(ECHO);
    tcsetattr(STDIN_FILENO, TCSANOW, &now);
  }
  errno = before;
}

}  // namespace

TypedAhead::TypedAhead() {
  termios now{};
  // On a plain terminal only the echo shows text that is typed at the prompt.
  if (!Terminal().moves() || tcgetattr(STDIN_FILENO, &now) != 0) {
    return;
  }
  before_ = now;
  stop_echo(0);
  struct sigaction action{};
  action.sa_handler = stop_echo;
  action.sa_flags = SA_RESTART;
  sigaction(SIGCONT, &action, &went_on_before_);
}

TypedAhead::~TypedAhead() {
  if (before_) {
    sigaction(SIGCONT, &went_on_before_, nullptr);
  }
  restore();
}

void TypedAhead::restore() const {
  if (before_) {
    tcsetattr(STDIN_FILENO, TCSANOW, &*before_);
  }
}

}  // namespace saker::cli
