// SPDX-License-Identifier: Apache-2.0
#include "saker/server/turns/content_tokens.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

namespace saker::server {
namespace {

using testing::ElementsAre;

std::vector<std::string> take(ContentTokens& tokens, const std::string& piece) {
  std::vector<std::string> texts;
  for (const engine::TokenEvent& token : tokens.take(piece)) {
    texts.push_back(token.bytes);
  }
  return texts;
}

void add(ContentTokens& tokens, const std::string& bytes) {
  tokens.add({.bytes = bytes});
}

TEST(ContentTokens, GivesEachTokenWithItsText) {
  ContentTokens tokens;
  add(tokens, "He");
  EXPECT_THAT(take(tokens, "He"), ElementsAre("He"));
  add(tokens, "l");
  add(tokens, "lo");
  EXPECT_THAT(take(tokens, "llo"), ElementsAre("l", "lo"));
}

TEST(ContentTokens, KeepsTokensWhoseTextIsHeldBack) {
  ContentTokens tokens;
  add(tokens, "a");
  add(tokens, "EN");  // May begin a stop text.
  EXPECT_THAT(take(tokens, "a"), ElementsAre("a"));
  add(tokens, "d");
  EXPECT_THAT(take(tokens, "ENd"), ElementsAre("EN", "d"));
}

TEST(ContentTokens, LeavesOutReasoningAndItsMarkers) {
  ContentTokens tokens;
  add(tokens, "hm");
  tokens.drop();
  add(tokens, "</think>");
  add(tokens, "\n\n");
  add(tokens, "Yes");
  EXPECT_THAT(take(tokens, "Yes"), ElementsAre("Yes"));
  add(tokens, "!");
  EXPECT_THAT(take(tokens, "!"), ElementsAre("!"));
}

}  // namespace
}  // namespace saker::server
