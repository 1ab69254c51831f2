// SPDX-License-Identifier: Apache-2.0
#pragma once

// Keeps text that is typed during an answer out of that answer: the terminal doesn't echo it, and
// the next prompt shows it. Works after Ctrl-Z and `fg`, too. One object at a time.

#include <signal.h>
#include <termios.h>

#include <optional>

namespace saker::cli {

class TypedAhead {
 public:
  // Turns the echo off if standard input is a terminal with line editing.
  TypedAhead();

  // Restores the terminal.
  ~TypedAhead();

  TypedAhead(const TypedAhead&) = delete;
  TypedAhead& operator=(const TypedAhead&) = delete;

  // As the destructor, from any thread, before a signal ends the program.
  void restore() const;

 private:
  std::optional<termios> before_;
  struct sigaction went_on_before_{};  // Previous handler of SIGCONT.
};

}  // namespace saker::cli
