// SPDX-License-Identifier: Apache-2.0
#pragma once

// ASCII's letters in one case, whatever the locale says; all other bytes stay as they are.

#include <algorithm>
#include <string>
#include <string_view>

namespace saker {

constexpr char ascii_lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

constexpr char ascii_upper(char c) {
  return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
}

inline std::string ascii_lower(std::string_view text) {
  std::string copy(text);
  std::ranges::transform(copy, copy.begin(), [](char c) { return ascii_lower(c); });
  return copy;
}

inline std::string ascii_upper(std::string_view text) {
  std::string copy(text);
  std::ranges::transform(copy, copy.begin(), [](char c) { return ascii_upper(c); });
  return copy;
}

}  // namespace saker
