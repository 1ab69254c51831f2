// SPDX-License-Identifier: Apache-2.0
#include "saker/base/characters/printable.h"

#include "saker/base/error.h"
#include "saker/base/utf8.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>

namespace saker {
namespace {

TEST(Printable, AnswersGiveNoOrdersToATerminal) {
  EXPECT_EQ(
      printable_text("\x1b]0;title\x07 \x1b[2J \u009b1m \x7f\b"),
      "\\x1b]0;title\\x07 \\x1b[2J \\xc2\\x9b1m \\x7f\\x08"
  );
  EXPECT_EQ(printable_text("a\tb\r\nc\rd\n"), "a\tb\ncd\n");
  EXPECT_EQ(
      printable_text("é 日本 👩‍🔬 עברית\u200f"),
      "é 日本 👩‍🔬 עברית\u200f"
  );
  EXPECT_EQ(printable_text("cut \xe6\x97"), "cut \\xe6\\x97");
  EXPECT_EQ(printable_text(std::string(1, '\0')), "\\x00");
  EXPECT_EQ(printable_text(""), "");
}

TEST(Printable, EveryControlCharacterIsShown) {
  for (char32_t code = 0; code < 0xa0; ++code) {
    std::string text;
    if (code < 0x80) {
      text = static_cast<char>(code);
    } else {
      text = {'\xc2', static_cast<char>(code)};
    }
    const bool stays = (code >= 0x20 && code < 0x7f) || code == '\n' || code == '\t';
    EXPECT_EQ(printable_text(text) == text, stays) << static_cast<int>(code);
    EXPECT_EQ(printable_lines(text) == text, stays) << static_cast<int>(code);
    EXPECT_EQ(is_hidden(code), code < 0x20 || code >= 0x7f) << static_cast<int>(code);
  }
}

TEST(Printable, NamesAreNotTurnedAround) {
  EXPECT_EQ(printable_lines("a\u202etxt.exe\n"), "a\\xe2\\x80\\xaetxt.exe\n");
  for (const char* hidden :
       {"\u061c", "\u200e", "\u200f", "\u2028", "\u2029", "\u202a", "\u2066", "\u2069"}) {
    EXPECT_TRUE(printable_lines(hidden).starts_with("\\x")) << hidden;
  }
  EXPECT_EQ(printable_lines("a\u200bb\u2065"), "a\u200bb\u2065");
}

TEST(Printable, AMessageIsOneLine) {
  EXPECT_EQ(printable_line("a\r\nb\tc\x1b"), "a b c\\x1b");
  const std::string line =
      printable_line("model: " + std::string(70'000, 'n') + ": cannot be opened");
  EXPECT_LE(line.size(), kMaxMessageBytes);
  EXPECT_TRUE(line.starts_with("model: nnn")) << line;
  EXPECT_TRUE(line.ends_with("nnn: cannot be opened")) << line;
  for (std::size_t size = 4085; size < 4110; ++size) {
    std::string text(size, 'a');
    for (int i = 0; i < 2000; ++i) {
      text += "日";
    }
    EXPECT_FALSE(find_invalid_utf8(printable_line(text))) << size;
    EXPECT_LE(printable_line(text).size(), kMaxMessageBytes) << size;
  }
}

TEST(Printable, ErrorsAreSo) {
  const Error error(ErrorCode::kNotFound, "a\nb \u009b " + std::string(5000, 'x') + " end");
  EXPECT_LE(std::string(error.what()).size(), kMaxMessageBytes);
  EXPECT_TRUE(std::string(error.what()).starts_with("a b \\xc2\\x9b xxx")) << error.what();
  EXPECT_TRUE(std::string(error.what()).ends_with("xxx end")) << error.what();
}

}  // namespace
}  // namespace saker
