// SPDX-License-Identifier: Apache-2.0
// What a template may read: special tokens, settings and variables of requests.
#include "saker/base/json/json.h"
#include "saker/text/chat_template.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <string>

namespace saker::text {
namespace {

const Json messages = {{{"role", "user"}, {"content", "hi"}}};

RenderOptions options(const Json& kwargs) {
  RenderOptions options;
  options.think = true;
  options.template_kwargs = kwargs;
  return options;
}

TEST(TemplateVariables, ManyVariablesTakeNoLonger) {
  constexpr int kVariables = 300'000;
  std::map<std::string, std::string> tokens;
  std::string text = R"({"k7": 8)";
  for (int i = 0; i < kVariables; ++i) {
    tokens.emplace(fmt::format("k{}_token", i), "t");
    text += fmt::format(R"(, "v{}": {})", i, i);
  }
  const Json kwargs = parse_json(text + "}", "variables");
  const ChatTemplate chat("{{ k1_token }}{{ v299999 }}{{ k7 }}{{ messages|length }}", tokens);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(chat.render(messages, options(kwargs)), "t29999981");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
}

TEST(TemplateVariables, LaterVariablesReplaceEarlierOnes) {
  const ChatTemplate chat(
      "{{ bos_token }}{{ enable_thinking }}{{ tools }}", {{"bos_token", "<s>"}}
  );
  const Json kwargs = {{"bos_token", "x"}, {"enable_thinking", "y"}};
  EXPECT_EQ(chat.render(messages, options(Json::object())), "<s>TrueNone");
  EXPECT_EQ(chat.render(messages, options(kwargs)), "xyNone");
}

}  // namespace
}  // namespace saker::text
