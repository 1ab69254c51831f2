// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/chat/conversation.h"

#include "saker/cli/chat/transcript.h"

#include "tests/support/expect_error.h"
#include "tests/support/temporary_dir.h"
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace saker::cli {
namespace {

using saker::testing::expect_error;

Json opening() {
  return Json::array({{{"role", "system"}, {"content", "be short"}}});
}

Conversation two_turns() {
  Conversation conversation(opening());
  conversation.add_turn("a", {.content = "b"});
  conversation.add_turn("c", {.reasoning = "hm", .content = "d"});
  return conversation;
}

TEST(Conversation, HasTheFormOfOpenAi) {
  EXPECT_EQ(
      two_turns().asking("e"),
      parse_json(
          R"([{"role":"system","content":"be short"},{"role":"user","content":"a"},
          {"role":"assistant","content":"b"},{"role":"user","content":"c"},
          {"role":"assistant","content":"d","reasoning_content":"hm"},
          {"role":"user","content":"e"}])",
          "expected"
      )
  );
  EXPECT_EQ(two_turns().turns(), 2);
}

TEST(Conversation, TurnsGoFromBothEnds) {
  Conversation conversation = two_turns();
  EXPECT_EQ(conversation.undo(), "c");
  EXPECT_EQ(conversation.turns(), 1);
  EXPECT_EQ(conversation.undo(), "a");
  EXPECT_EQ(conversation.undo(), std::nullopt);
  EXPECT_EQ(conversation.messages(), opening());
  conversation = two_turns();
  EXPECT_TRUE(conversation.drop_oldest());
  EXPECT_EQ(message_text(conversation.messages()[1]), "c");
  EXPECT_TRUE(conversation.drop_oldest());
  EXPECT_FALSE(conversation.drop_oldest());
  EXPECT_EQ(conversation.messages(), opening());
}

TEST(Conversation, HasOneSystemMessage) {
  Conversation conversation = two_turns();
  EXPECT_EQ(conversation.system(), "be short");
  conversation.set_system("be long");
  EXPECT_EQ(conversation.system(), "be long");
  EXPECT_EQ(conversation.messages().size(), 5U);
  EXPECT_EQ(conversation.messages()[0], (Json{{"role", "system"}, {"content", "be long"}}));
  conversation.set_system("");
  EXPECT_EQ(conversation.system(), "");
  EXPECT_EQ(conversation.messages().size(), 4U);
}

TEST(Conversation, IsTheSameFromAFile) {
  const testing::TemporaryDir dir;
  const auto path = dir.path() / "chat.json";
  save_conversation(two_turns(), path);
  EXPECT_EQ(load_conversation(path).messages(), two_turns().messages());
  EXPECT_EQ(load_conversation(path).turns(), 2);
  EXPECT_EQ(load_conversation(path).system(), "be short");
  save_conversation(Conversation(), path);
  EXPECT_EQ(load_conversation(path).turns(), 0);
  std::ofstream(path
  ) << R"({"model":"x","messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}]})";
  Conversation loaded = load_conversation(path);
  EXPECT_EQ(loaded.undo(), "hi");
}

TEST(Conversation, OtherFilesAreRefusedAndStay) {
  const testing::TemporaryDir dir;
  const auto path = dir.path() / "notes.txt";
  for (const char* text : {"hello", "{}", "[1]", R"([{"content":"x"}])", R"({"messages":3})", ""}) {
    std::ofstream(path) << text;
    EXPECT_THROW(load_conversation(path), Error) << text;
    expect_error(ErrorCode::kInvalidArgument, {"not replaced"}, [&] {
      save_conversation(two_turns(), path);
    });
    std::ifstream file(path);
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), text);
  }
  expect_error(ErrorCode::kNotFound, {"nowhere"}, [&] {
    load_conversation(dir.path() / "nowhere.json");
  });
}

}  // namespace
}  // namespace saker::cli
