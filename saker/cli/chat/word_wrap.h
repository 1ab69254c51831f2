// SPDX-License-Identifier: Apache-2.0
#pragma once

// Wraps a streamed text between words at the window's width. Holds the current word back. Lines of
// code between ``` and of tables stay as they are. The joined output is the text with some white
// space replaced by line breaks.

#include "saker/cli/chat/terminal.h"

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace saker::cli {

class WordWrap {
 public:
  // `width` returns the window's columns and is called at each word; 0: no line is broken.
  explicit WordWrap(std::function<std::size_t()> width) : width_(std::move(width)) {}

  // The text that can be shown after a piece of whole characters.
  std::string push(std::string_view piece);
  // The text still held back; the next piece continues the line.
  std::string flush();

  // True if the next character begins a line.
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

// A whole text, wrapped at the width of `terminal`.
std::string wrapped(const Terminal& terminal, std::string_view text);

}  // namespace saker::cli
