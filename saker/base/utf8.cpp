// SPDX-License-Identifier: Apache-2.0
#include "saker/base/utf8.h"

#include "saker/base/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace saker {
namespace {

struct LeadByte {
  std::size_t length;        // Of the whole character; 0 for bytes that start none.
  unsigned char low = 0x80;  // Range of the second byte.
  unsigned char high = 0xbf;
};

LeadByte classify(unsigned char byte) {
  if (byte < 0x80) {
    return {.length = 1};
  }
  if (byte >= 0xc2 && byte <= 0xdf) {
    return {.length = 2};
  }
  if (byte >= 0xe0 && byte <= 0xef) {
    const unsigned char low = byte == 0xe0 ? 0xa0 : 0x80;
    const unsigned char high = byte == 0xed ? 0x9f : 0xbf;
    return {.length = 3, .low = low, .high = high};
  }
  if (byte >= 0xf0 && byte <= 0xf4) {
    const unsigned char low = byte == 0xf0 ? 0x90 : 0x80;
    const unsigned char high = byte == 0xf4 ? 0x8f : 0xbf;
    return {.length = 4, .low = low, .high = high};
  }
  return {.length = 0};
}

// Bytes of the valid character at the start of `text`, 0 when there is none. REQUIRES: text is not
// empty.
std::size_t character_length(std::string_view text) {
  const LeadByte lead = classify(static_cast<unsigned char>(text[0]));
  if (lead.length == 0 || lead.length > text.size()) {
    return 0;
  }
  for (std::size_t i = 1; i < lead.length; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const bool second = i == 1;
    if (byte < (second ? lead.low : 0x80) || byte > (second ? lead.high : 0xbf)) {
      return 0;
    }
  }
  return lead.length;
}

}  // namespace

std::optional<std::size_t> find_invalid_utf8(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t length = character_length(text.substr(at));
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
    const std::size_t length = character_length(text.substr(at));
    const auto byte = static_cast<unsigned char>(text[at]);
    if (length == 0 || byte < 0x20 || byte == 0x7f) {
      result += fmt::format("\\x{:02x}", byte);
      ++at;
    } else {
      result += text.substr(at, length);
      at += length;
    }
  }
  return result + (at < text.size() ? "...'" : "'");
}

std::string quote_path(const std::filesystem::path& path) {
  return quote(path.native(), path.native().size());
}

}  // namespace saker
