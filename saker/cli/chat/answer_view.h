// SPDX-License-Identifier: Apache-2.0
#pragma once

// Shows an answer while it is generated: a spinner before its first word, reasoning dimmed or
// folded into one line, words wrapped. If standard output is no terminal, writes only the answer
// itself, byte for byte.

#include "saker/cli/chat/terminal.h"
#include "saker/cli/chat/word_wrap.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace saker::cli {

enum class ThoughtView : std::uint8_t {
  kShown,   // Dimmed.
  kFolded,  // One line tells how long the reasoning takes.
};

struct ViewOptions {
  ThoughtView thoughts = ThoughtView::kShown;
  bool wraps = true;
  bool has_spinner = true;
};

// Prints a line of our own between question and answer, dimmed.
void print_note(const Terminal& terminal, std::string_view text);

class AnswerView {
 public:
  AnswerView(const Terminal& terminal, ViewOptions options);

  // Call when no text came for a moment; `done` of `total` tokens of the prompt have run.
  void wait(int done, int total);
  void think(std::string_view piece);
  void say(std::string_view piece);
  // Ends the line and anything else that is open.
  void end();

  // True if text of the answer itself has come.
  bool has_answer() const { return has_answer_; }

 private:
  using Clock = std::chrono::steady_clock;

  void spin(const std::string& text);
  void clear_line();
  void end_thoughts();
  void show(const std::string& text);

  const Terminal& terminal_;
  ViewOptions options_;
  WordWrap wrap_;
  Clock::time_point begin_ = Clock::now();
  Clock::time_point last_frame_ = {};
  std::size_t frame_ = 0;
  bool has_line_ = false;  // The spinner's line is on the screen.
  bool thinks_ = false;
  bool has_answer_ = false;
  bool ends_line_ = true;  // The last output ended a line.
};

}  // namespace saker::cli
