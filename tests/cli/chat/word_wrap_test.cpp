// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/chat/word_wrap.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace saker::cli {
namespace {

std::string wrapped(std::size_t width, const std::vector<std::string>& pieces) {
  WordWrap wrap([width] { return width; });
  std::string shown;
  for (const std::string& piece : pieces) {
    shown += wrap.push(piece);
  }
  return shown + wrap.flush();
}

TEST(WordWrap, BreaksBetweenWords) {
  EXPECT_EQ(wrapped(10, {"one two th", "ree four"}), "one two\nthree four");
  EXPECT_EQ(wrapped(10, {"  one\n\n two\n"}), "  one\n\n two\n");
  EXPECT_EQ(wrapped(0, {"one two three four"}), "one two three four");
}

TEST(WordWrap, CountsColumnsAndNotBytes) {
  EXPECT_EQ(wrapped(10, {"äöü äöü äö"}), "äöü äöü äö");
  EXPECT_EQ(wrapped(6, {"日本語の文"}), "日本語\nの文");
  EXPECT_EQ(wrapped(4, {"ab 👩‍💻"}), "ab\n👩‍💻");
}

TEST(WordWrap, LongWordsCodeAndTablesStayWhole) {
  EXPECT_EQ(wrapped(4, {"a bbbbbbbb c"}), "a\nbbbbbbbb\nc");
  const std::string code = "```\nint main() { return 0; }\n```\n";
  EXPECT_EQ(wrapped(8, {code}), code);
  EXPECT_EQ(wrapped(8, {code + "one two three"}), code + "one two\nthree");
  const std::string table = "| one | two | three |\n";
  EXPECT_EQ(wrapped(8, {table}), table);
}

RC_GTEST_PROP(WordWrap, OnlyWhiteSpaceChanges, ()) {
  const auto words = *rc::gen::container<std::vector<std::string>>(
      rc::gen::element<std::string>("a", "word", " ", "  ", "\n", "日本", "longer_word", "```", "|")
  );
  const auto width = *rc::gen::inRange<std::size_t>(0, 20);
  std::string text;
  for (const std::string& word : words) {
    text += word;
  }
  const auto letters = [](std::string from) {
    std::erase_if(from, [](char c) { return c == ' ' || c == '\n'; });
    return from;
  };
  RC_ASSERT(letters(wrapped(width, words)) == letters(text));
  RC_ASSERT(wrapped(width, words) == wrapped(width, {text}));
}

}  // namespace
}  // namespace saker::cli
