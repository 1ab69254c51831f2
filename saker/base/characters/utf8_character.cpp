// SPDX-License-Identifier: Apache-2.0
#include "saker/base/characters/utf8_character.h"

#include <cstddef>
#include <string_view>

namespace saker {
namespace {

struct LeadByte {
  std::size_t length;        // Bytes of the whole character; 0 if none starts so.
  unsigned char bits = 0;    // The bits that belong to its code.
  unsigned char low = 0x80;  // Range of the second byte.
  unsigned char high = 0xbf;
};

LeadByte classify(unsigned char byte) {
  if (byte < 0x80) {
    return {.length = 1, .bits = 0x7f};
  }
  if (byte >= 0xc2 && byte <= 0xdf) {
    return {.length = 2, .bits = 0x1f};
  }
  if (byte >= 0xe0 && byte <= 0xef) {
    const unsigned char low = byte == 0xe0 ? 0xa0 : 0x80;
    const unsigned char high = byte == 0xed ? 0x9f : 0xbf;
    return {.length = 3, .bits = 0x0f, .low = low, .high = high};
  }
  if (byte >= 0xf0 && byte <= 0xf4) {
    const unsigned char low = byte == 0xf0 ? 0x90 : 0x80;
    const unsigned char high = byte == 0xf4 ? 0x8f : 0xbf;
    return {.length = 4, .bits = 0x07, .low = low, .high = high};
  }
  return {.length = 0};
}

}  // namespace

Utf8Character first_character(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  const LeadByte lead = classify(first);
  if (lead.length == 0 || lead.length > text.size()) {
    return {};
  }
  char32_t code = first & lead.bits;
  for (std::size_t i = 1; i < lead.length; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const bool second = i == 1;
    if (byte < (second ? lead.low : 0x80) || byte > (second ? lead.high : 0xbf)) {
      return {};
    }
    code = code << 6 | (byte & 0x3fU);
  }
  return {.length = lead.length, .code = code};
}

}  // namespace saker
