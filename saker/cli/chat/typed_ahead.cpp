// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/chat/typed_ahead.h"

#include "saker/cli/chat/terminal.h"

#include <unistd.h>

namespace saker::cli {

TypedAhead::TypedAhead() {
  termios now{};
  // On a plain terminal the echo is all that shows what is typed at the prompt.
  if (!Terminal().moves() || tcgetattr(STDIN_FILENO, &now) != 0) {
    return;
  }
  before_ = now;
  now.c_lflag &= ~static_cast<tcflag_t>(ECHO);
  tcsetattr(STDIN_FILENO, TCSANOW, &now);
}

void TypedAhead::restore() const {
  if (before_) {
    tcsetattr(STDIN_FILENO, TCSANOW, &*before_);
  }
}

}  // namespace saker::cli
