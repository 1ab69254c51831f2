// SPDX-License-Identifier: Apache-2.0
#pragma once

// Breaks lines of a text between words, while it comes, where the window ends. The word that is
// being written is held back. Lines of code between ``` and of tables stay as they are. Joined, the
// output is the text with some white space become line breaks.

#include "saker/cli/chat/terminal.h"

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace saker::cli {

class WordWrap {
 public:
  // `width`: columns of the window, asked for at each word; 0: no line is broken.
  explicit WordWrap(std::function<std::size_t()> width) : width_(std::move(width)) {}

  // What can be shown after a piece of whole characters.
  std::string push(std::string_view piece);
  // What was held back; the next piece goes on in the same line.
  std::string flush();

  // Whether the next character begins a line.
  bool at_line_start() const { return column_ == 0 && word_.empty() && spaces_.empty(); }

 private:
  void end_line(std::string& shown);
  void place_word(std::string& shown);

  std::function<std::size_t()> width_;
  std::size_t column_ = 0;
  std::string spaces_;  // Before the word.
  std::string word_;
  bool is_code_ = false;   // Between lines that begin with ```.
  bool is_table_ = false;  // The line begins with a bar.
};

// A whole text, broken where the window of `terminal` ends.
std::string wrapped(const Terminal& terminal, std::string_view text);

}  // namespace saker::cli
