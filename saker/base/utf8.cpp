// SPDX-License-Identifier: Apache-2.0
#include "saker/base/utf8.h"

#include "saker/base/characters/printable.h"
#include "saker/base/characters/utf8_character.h"
#include "saker/base/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace saker {

std::optional<std::size_t> find_invalid_utf8(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    if (static_cast<unsigned char>(text[at]) < 0x80) {
      ++at;
      continue;
    }
    const std::size_t length = first_character(text.substr(at)).length;
    if (length == 0) {
      return at;
    }
    at += length;
  }
  return std::nullopt;
}

void require_utf8(std::string_view text, std::string_view what) {
  if (const auto at = find_invalid_utf8(text)) {
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format(
            "{}: byte 0x{:02x} at offset {} is not valid UTF-8",
            what,
            static_cast<unsigned char>(text[*at]),
            *at
        )
    );
  }
}

std::string quote(std::string_view text, std::size_t limit) {
  std::string result = "'";
  std::size_t at = 0;
  while (at < std::min(text.size(), limit)) {
    const auto [length, code] = first_character(text.substr(at));
    const std::string_view bytes = text.substr(at, std::max<std::size_t>(length, 1));
    if (length == 0 || is_hidden(code)) {
      for (const char byte : bytes) {
        result += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
      }
    } else {
      result += bytes;
    }
    at += bytes.size();
  }
  return result + (at < text.size() ? "...'" : "'");
}

std::string quote_path(const std::filesystem::path& path) {
  return quote(path.native(), path.native().size());
}

}  // namespace saker
