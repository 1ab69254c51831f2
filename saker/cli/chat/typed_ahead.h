// SPDX-License-Identifier: Apache-2.0
#pragma once

// Keeps what is typed while an answer comes out of that answer: the terminal doesn't echo it, and
// the next prompt shows it. That holds after Ctrl-Z and `fg`, too. One at a time.

#include <signal.h>
#include <termios.h>

#include <optional>

namespace saker::cli {

class TypedAhead {
 public:
  // Turns the echo off where standard input is a terminal on which lines are edited key by key.
  TypedAhead();

  // Gives the terminal back as it was.
  ~TypedAhead();

  TypedAhead(const TypedAhead&) = delete;
  TypedAhead& operator=(const TypedAhead&) = delete;

  // The same, from any thread, before a signal ends the program.
  void restore() const;

 private:
  std::optional<termios> before_;
  struct sigaction went_on_before_{};  // Of SIGCONT.
};

}  // namespace saker::cli
