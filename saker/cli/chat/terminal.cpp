// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/chat/terminal.h"

#include "saker_rs_terminal.h"
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>

namespace saker::cli {
namespace {

std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

// Terminals on which the line editor also reads whole lines.
bool knows_no_orders(std::string_view terminal) {
  return terminal.empty() || terminal == "dumb" || terminal == "emacs" || terminal == "cons25";
}

}  // namespace

std::size_t text_width(std::string_view text) {
  return saker_rs_text_width(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
}

Terminal::Terminal()
    : is_terminal_(isatty(STDOUT_FILENO) == 1),
      is_dumb_(knows_no_orders(environment("TERM"))),
      has_colors_(is_terminal_ && !is_dumb_ && environment("NO_COLOR").empty()) {}

std::size_t Terminal::width() const {
  winsize size{};
  if (!is_terminal_ || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) {
    return 0;
  }
  return size.ws_col;
}

std::string Terminal::styled(std::string_view code, std::string_view text) const {
  return has_colors_ ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : std::string(text);
}

}  // namespace saker::cli
