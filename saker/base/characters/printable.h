// SPDX-License-Identifier: Apache-2.0
#pragma once

// Makes text from outside (a model's output, names in messages) safe to show. Control characters
// command terminals: they set the title, fill the clipboard, or overwrite earlier text.
// Bidirectional controls reverse names. Both become visible, each byte as \xNN, and so do bytes
// that are not UTF-8.

#include <cstddef>
#include <string>
#include <string_view>

namespace saker {

// Maximum bytes of an error or warning; a longer one loses its middle.
inline constexpr std::size_t kMaxMessageBytes = 4096;

// True for C0, DEL and C1.
bool is_control(char32_t code);

// True for a character that takes no place of its own, or that controls how others are shown:
// control characters (C0, DEL, C1), bidirectional controls, line separators.
bool is_hidden(char32_t code);

// For a model's output. Line breaks and tabs stay, carriage returns are removed. Bidirectional
// controls stay, since some languages need them. A piece of a text must hold whole characters.
std::string printable_text(std::string_view text);

// For our own lines that contain foreign names.
std::string printable_lines(std::string_view text);

// One line of at most kMaxMessageBytes; line breaks and tabs become spaces.
std::string printable_line(std::string_view text);

}  // namespace saker
