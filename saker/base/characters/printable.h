// SPDX-License-Identifier: Apache-2.0
#pragma once

// Text from outside on its way to people: what models write, and names in messages. Terminals take
// orders in control characters: set the title, fill the clipboard, move the cursor over what stood
// there. Bidirectional controls turn a name around. Both become visible, byte by byte as \xNN, and
// so do bytes that are no UTF-8.

#include <cstddef>
#include <string>
#include <string_view>

namespace saker {

// Bytes of an error or a warning at most; the middle of a longer one goes.
inline constexpr std::size_t kMaxMessageBytes = 4096;

// C0, DEL and C1.
bool is_control(char32_t code);

// Whether a character takes no place of its own, or tells a terminal or a reader how to show
// others: control characters (C0, DEL, C1), bidirectional controls, separators of lines.
bool is_hidden(char32_t code);

// Lines that a model wrote. Line breaks and tabs stay, carriage returns go; bidirectional controls
// stay, since texts of some languages need them. A piece of a text must hold whole characters.
std::string printable_text(std::string_view text);

// Lines of our own with names in them.
std::string printable_lines(std::string_view text);

// One line, of at most kMaxMessageBytes: line breaks and tabs are spaces.
std::string printable_line(std::string_view text);

}  // namespace saker
