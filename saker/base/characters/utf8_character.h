// SPDX-License-Identifier: Apache-2.0
#pragma once

// Decodes the first UTF-8 character of bytes from outside (Unicode 15, table 3-7: no overlong
// forms, no surrogates, nothing above U+10FFFF).

#include <cstddef>
#include <string_view>

namespace saker {

struct Utf8Character {
  std::size_t length = 0;  // In bytes; 0 if the bytes are invalid.
  char32_t code = 0;
};

// REQUIRES: text is not empty.
Utf8Character first_character(std::string_view text);

}  // namespace saker
