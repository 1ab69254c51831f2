// SPDX-License-Identifier: Apache-2.0
#include "saker/text/reasoning.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace saker::text {

static std::ostream& operator<<(std::ostream& out, const AnswerParts& parts) {
  return out << "[" << parts.reasoning << "|" << parts.content << "]";
}

namespace {

void add(AnswerParts& parts, const AnswerParts& more) {
  parts.reasoning += more.reasoning;
  parts.content += more.content;
}

AnswerParts split(const std::vector<std::string>& pieces, std::string_view prompt = "") {
  ReasoningSplitter splitter(prompt);
  AnswerParts parts;
  for (const std::string& piece : pieces) {
    add(parts, splitter.push(piece));
  }
  add(parts, splitter.finish());
  return parts;
}

AnswerParts split(const std::string& text, std::string_view prompt = "") {
  return split(std::vector<std::string>{text}, prompt);
}

TEST(Reasoning, AnAnswerWithoutMarkersIsContent) {
  for (const char* text :
       {"", " ", "\n\nhello\n", "2 < 3", "<", "<thin", "<b>bold</b>", "</think>late", "a <think> b"
       }) {
    EXPECT_EQ(split(text), (AnswerParts{"", text})) << text;
  }
}

TEST(Reasoning, ThoughtsStandBeforeTheContent) {
  EXPECT_EQ(split("<think>\na b\n\nc\n</think>\n\nhello\n"), (AnswerParts{"a b\n\nc", "hello\n"}));
  EXPECT_EQ(split("\n<think>a</think>hello"), (AnswerParts{"a", "hello"}));
  EXPECT_EQ(split("<think>\n\n</think>\n\nhello"), (AnswerParts{"", "hello"}));
  EXPECT_EQ(split("<think>never ends "), (AnswerParts{"never ends", ""}));
  EXPECT_EQ(split("<think>a </thin"), (AnswerParts{"a </thin", ""}));
  EXPECT_EQ(split("<think>a<</think>b</think>c"), (AnswerParts{"a<", "b</think>c"}));
  EXPECT_EQ(split("<think>a<think>b</think>c"), (AnswerParts{"a<think>b", "c"}));
}

TEST(Reasoning, ThePromptMayHaveBegunThem) {
  EXPECT_EQ(split("a\n</think>\n\nb", "<|assistant|>\n<think>\n"), (AnswerParts{"a", "b"}));
  EXPECT_EQ(split("<think>a</think>b", "<think>\n"), (AnswerParts{"a", "b"}));
  EXPECT_EQ(split("b", "<think>\n\n</think>\n\n"), (AnswerParts{"", "b"}));
  EXPECT_EQ(split("b", "what is <think>?<|assistant|>"), (AnswerParts{"", "b"}));
  EXPECT_EQ(split("cut", "<think>"), (AnswerParts{"cut", ""}));
}

TEST(Reasoning, EachFormatEndsWithItsOwnMarker) {
  EXPECT_EQ(split("[THINK]a</think>b[/THINK]c"), (AnswerParts{"a</think>b", "c"}));
  EXPECT_EQ(split("<|channel>thought\na<channel|>b"), (AnswerParts{"a", "b"}));
  EXPECT_EQ(
      split("<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>final<|message|>b"),
      (AnswerParts{"a", "b"})
  );
  EXPECT_EQ(split("◁think▷a◁b◁/think▷c"), (AnswerParts{"a◁b", "c"}));
}

TEST(Reasoning, MuchWhiteSpaceBeforeAMarkerIsContent) {
  const std::string text = std::string(1000, '\n') + "<think>a</think>b";
  EXPECT_EQ(split(text), (AnswerParts{"", text}));
}

RC_GTEST_PROP(Reasoning, PiecesChangeNothing, ()) {
  const auto words = *rc::gen::container<std::vector<std::string>>(rc::gen::element<std::string>(
      "<think>",
      "</think>",
      "<",
      "</",
      "think>",
      " ",
      "\n",
      "a",
      "[THINK]",
      "[/THINK]",
      "<|end|>",
      "<|channel|>analysis<|message|>",
      "<|start|>assistant",
      "◁think▷"
  ));
  const auto prompt = *rc::gen::element<std::string>("", "<think>\n", "[THINK]", "hello");
  std::string text;
  std::vector<std::string> bytes;
  for (const std::string& word : words) {
    text += word;
    for (const char byte : word) {
      bytes.emplace_back(1, byte);
    }
  }
  const AnswerParts whole = split(text, prompt);
  RC_ASSERT(split(words, prompt) == whole);
  RC_ASSERT(split(bytes, prompt) == whole);
  RC_ASSERT(whole.reasoning.size() + whole.content.size() <= text.size());
}

}  // namespace
}  // namespace saker::text
