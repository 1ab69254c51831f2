// SPDX-License-Identifier: Apache-2.0
#pragma once

// The abilities of standard output. Colours need a terminal that is not "dumb", and a user who has
// not set NO_COLOR (no-color.org). REQUIRES: text in styles is our own or printable already.

#include <cstddef>
#include <string>
#include <string_view>

namespace saker::cli {

// Columns that a UTF-8 text takes.
std::size_t text_width(std::string_view text);

class Terminal {
 public:
  // Inspects standard output and the environment.
  Terminal();

  bool is_terminal() const { return is_terminal_; }

  // True if it can move the cursor and clear lines.
  bool moves() const { return is_terminal_ && !is_dumb_; }

  bool has_colors() const { return has_colors_; }

  // The current number of columns; 0: no terminal, or it does not say.
  std::size_t width() const;

  // The text in a style if there are colours, else unchanged.
  std::string dim(std::string_view text) const { return styled("2", text); }

  std::string bold(std::string_view text) const { return styled("1", text); }

  std::string red(std::string_view text) const { return styled("31", text); }

  std::string yellow(std::string_view text) const { return styled("33", text); }

 private:
  std::string styled(std::string_view code, std::string_view text) const;

  bool is_terminal_;
  bool is_dumb_;
  bool has_colors_;
};

}  // namespace saker::cli
