// SPDX-License-Identifier: Apache-2.0
#include "saker/base/characters/printable.h"

#include "saker/base/characters/utf8_character.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace saker {
namespace {

bool is_plain(char byte) {
  return byte >= 0x20 && byte < 0x7f;
}

// `shown(code)` is true for characters that stay as they are.
template <typename Shown>
std::string escaped(std::string_view text, const Shown& shown) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const auto plain = static_cast<std::size_t>(
        std::find_if_not(text.begin(), text.end(), is_plain) - text.begin()
    );
    result += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty()) {
      break;
    }
    const Utf8Character character = first_character(text);
    const std::string_view bytes = text.substr(0, std::max<std::size_t>(character.length, 1));
    if (character.length > 0 && shown(character.code)) {
      result += bytes;
    } else if (bytes != "\r") {
      for (const char byte : bytes) {
        result += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
      }
    }
    text.remove_prefix(bytes.size());
  }
  return result;
}

// Keeps beginning and end: most messages begin with their subject and end with the reason.
std::string shortened(std::string text) {
  constexpr std::string_view kGap = " ... ";
  constexpr std::size_t kEnd = kMaxMessageBytes / 4;
  if (text.size() <= kMaxMessageBytes) {
    return text;
  }
  const auto continues = [&](std::size_t at) {
    return (static_cast<unsigned char>(text[at]) & 0xc0U) == 0x80U;
  };
  std::size_t begin = kMaxMessageBytes - kEnd - kGap.size();
  std::size_t end = text.size() - kEnd;
  while (continues(begin)) {
    --begin;
  }
  while (end < text.size() && continues(end)) {
    ++end;
  }
  return text.replace(begin, end - begin, kGap);
}

}  // namespace

bool is_control(char32_t code) {
  return code < 0x20 || (code >= 0x7f && code < 0xa0);
}

bool is_hidden(char32_t code) {
  return is_control(code) || code == 0x061c || code == 0x200e || code == 0x200f ||
         (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

std::string printable_text(std::string_view text) {
  return escaped(text, [](char32_t code) {
    return !is_control(code) || code == '\n' || code == '\t';
  });
}

std::string printable_lines(std::string_view text) {
  return escaped(text, [](char32_t code) {
    return !is_hidden(code) || code == '\n' || code == '\t';
  });
}

std::string printable_line(std::string_view text) {
  std::string line = printable_lines(text);
  std::replace(line.begin(), line.end(), '\n', ' ');
  std::replace(line.begin(), line.end(), '\t', ' ');
  return shortened(std::move(line));
}

}  // namespace saker
