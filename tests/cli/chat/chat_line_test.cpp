// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/chat/commands.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace saker::cli {
namespace {

using Kind = ChatLine::Kind;

TEST(ChatLine, CommandsAreASlashAndTheirName) {
  for (const ChatCommand& command : chat_commands()) {
    const ChatLine line = parse_line("/" + std::string(command.name) + " \t");
    EXPECT_EQ(line.kind, Kind::kCommand) << command.name;
    EXPECT_EQ(line.command->name, command.name);
    EXPECT_EQ(line.text, "");
  }
  const ChatLine set = parse_line("/set  temp 0.5 ");
  EXPECT_EQ(set.kind, Kind::kCommand);
  EXPECT_EQ(set.text, "temp 0.5");
  EXPECT_EQ(parse_line("/system \"\"\"\nYou are\na pirate.\n\"\"\"").text, "You are\na pirate.");
}

TEST(ChatLine, WhatCannotBeACommandIsAQuestion) {
  for (const char* question :
       {"hello",
        "/etc/hosts",
        "/no_think Why?",
        "/no_think",
        "/",
        "//",
        "/ help",
        "/HELP",
        "/quit is what I said",
        "/think about it",
        "/show me how",
        "/clear my doubts",
        "/2"}) {
    const ChatLine line = parse_line(question);
    EXPECT_EQ(line.kind, Kind::kQuestion) << question;
    EXPECT_EQ(line.text, question);
  }
  EXPECT_EQ(parse_line(" /help").text, "/help");
  EXPECT_EQ(parse_line(" /help").kind, Kind::kQuestion);
  for (const char* nothing : {"", " ", "\t", "\"\"\"\n\"\"\""}) {
    EXPECT_EQ(parse_line(nothing).kind, Kind::kNothing) << nothing;
  }
}

TEST(ChatLine, WrongCommandsNameTheNearestOne) {
  const auto near = [](std::string_view line) {
    const ChatLine parsed = parse_line(line);
    EXPECT_EQ(parsed.kind, Kind::kUnknown) << line;
    return parsed.command == nullptr ? std::string_view() : parsed.command->name;
  };
  EXPECT_EQ(near("/hlep"), "help");
  EXPECT_EQ(near("/regenrate"), "regenerate");
  EXPECT_EQ(near("/sytem You are a pirate"), "system");
  EXPECT_EQ(near("/nonsense"), "");
}

TEST(ChatLine, TextsOfSeveralLines) {
  EXPECT_EQ(parse_line("\"\"\"a\nb\"\"\"").text, "a\nb");
  EXPECT_EQ(parse_line("a\\\nb\\\nc").text, "a\nb\nc");
  EXPECT_EQ(parse_line("say \"\"\" twice").text, "say \"\"\" twice");
  EXPECT_EQ(parse_line("  indented\n    more").text, "  indented\n    more");
}

}  // namespace
}  // namespace saker::cli
