// SPDX-License-Identifier: Apache-2.0
#include "saker/base/utf8.h"

#include "saker/base/error.h"

#include "tests/support/expect_error.h"
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace saker {
namespace {

std::string encode(std::uint32_t c) {
  const auto byte = [](std::uint32_t value) { return static_cast<char>(value); };
  if (c < 0x80) {
    return {byte(c)};
  }
  if (c < 0x800) {
    return {byte(0xc0 | c >> 6), byte(0x80 | (c & 0x3f))};
  }
  if (c < 0x10000) {
    return {byte(0xe0 | c >> 12), byte(0x80 | (c >> 6 & 0x3f)), byte(0x80 | (c & 0x3f))};
  }
  return {
      byte(0xf0 | c >> 18),
      byte(0x80 | (c >> 12 & 0x3f)),
      byte(0x80 | (c >> 6 & 0x3f)),
      byte(0x80 | (c & 0x3f))
  };
}

// Every number that four bytes can spell: valid exactly when Unicode has it and no surrogate is
// meant.
TEST(FindInvalidUtf8, AgreesWithUnicodeOnEveryCharacter) {
  for (std::uint32_t c = 0; c < 0x200000; ++c) {
    const bool surrogate = c >= 0xd800 && c <= 0xdfff;
    const bool valid = c <= 0x10ffff && !surrogate;
    ASSERT_EQ(find_invalid_utf8(encode(c)).has_value(), !valid) << c;
  }
}

TEST(FindInvalidUtf8, GivesTheOffset) {
  const std::vector<std::pair<std::string_view, std::size_t>> cases = {
      {"abc\xff", 3},
      {"\x80", 0},
      {"a\xc0\x80", 1},          // Overlong.
      {"a\xe0\x80\x80", 1},      // Overlong.
      {"a\xf0\x80\x80\x80", 1},  // Overlong.
      {"ab\xed\xa0\x80", 2},     // A surrogate.
      {"\xf4\x90\x80\x80", 0},   // Above U+10FFFF.
      {"\xc3\xa9\xe2\x82", 2},   // Cut off.
      {"\xc3\x41", 0},
      {"\xe2\x82\x41", 0},
  };
  for (const auto& [text, offset] : cases) {
    EXPECT_EQ(find_invalid_utf8(text), offset);
  }
  EXPECT_FALSE(find_invalid_utf8(""));
  EXPECT_FALSE(find_invalid_utf8(std::string_view("\0a", 2)));
}

TEST(RequireUtf8, NamesByteAndOffset) {
  EXPECT_NO_THROW(require_utf8("héllo", "the prompt"));
  testing::expect_error(ErrorCode::kInvalidArgument, {"the prompt", "0xe9", "offset 1"}, [] {
    require_utf8("h\xe9llo", "the prompt");
  });
}

TEST(Quote, ShowsForeignBytesSafely) {
  EXPECT_EQ(quote("plain é"), "'plain é'");
  EXPECT_EQ(quote(std::string_view("a\0b\n\x7f\xff", 6)), "'a\\x00b\\x0a\\x7f\\xff'");
  // One byte that is no character, CSI as a character, a name turned around, a line's end.
  EXPECT_EQ(quote("\x9b \u009b \u202e \u0085"), "'\\x9b \\xc2\\x9b \\xe2\\x80\\xae \\xc2\\x85'");
  EXPECT_EQ(quote("abcdef", 3), "'abc...'");
  EXPECT_EQ(quote("aé", 2), "'aé'");  // A character is never cut.
  EXPECT_EQ(quote(""), "''");
}

RC_GTEST_PROP(Quote, IsAlwaysValidText, (const std::string& bytes, std::uint8_t limit)) {
  const std::string text = quote(bytes, limit);
  RC_ASSERT(!find_invalid_utf8(text));
  RC_ASSERT(text.find('\n') == std::string::npos);
}

}  // namespace
}  // namespace saker
