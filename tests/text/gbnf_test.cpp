// SPDX-License-Identifier: Apache-2.0
#include "saker/text/gbnf.h"

#include "saker/base/error.h"

#include <gtest/gtest.h>

#include <string>

namespace saker::text {
namespace {

TEST(Gbnf, IsToldFromLark) {
  EXPECT_TRUE(is_gbnf("# c\nroot ::= \"a\""));
  EXPECT_TRUE(is_gbnf("my-rule::=[a]"));
  EXPECT_FALSE(is_gbnf("start: \"::=\" /a/"));
  EXPECT_FALSE(is_gbnf("start: \"x\"\n"));
  EXPECT_FALSE(is_gbnf(""));
}

TEST(Gbnf, BecomesLark) {
  const std::string grammar =
      "root  ::= (item \"\\n\")+ # one a line\n"
      "item  ::= [a-zA-Z\\]_-] [^\\n\"]{0,3} | \n  \"\\x41\\u00e9\" other-Rule? .*\n"
      "other-Rule ::= \"say \\\"hi\\\"\"\n";
  EXPECT_EQ(
      lark_of_gbnf(grammar, "grammar"),
      "start: ( g_item \"\\n\" )+\n"
      "g_item: /[a-zA-Z\\]_\\-]/ /[^\\n\\\"]/{0,3} | \"Aé\" g_other_rule? /(?s:.)/*\n"
      "g_other_rule: \"say \\\"hi\\\"\"\n"
  );
}

TEST(Gbnf, NamesWhatItCannotRead) {
  const auto message = [](const char* grammar) -> std::string {
    try {
      lark_of_gbnf(grammar, "grammar");
      return "";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      return error.what();
    }
  };
  EXPECT_NE(message("root ::= \"a\"\n  <[10]>").find("line 2: got \"<[10]>\""), std::string::npos);
  for (const char* broken :
       {"root",
        "root ::= (",
        "root ::= )",
        "root ::= \"a",
        "root ::= [a",
        "root ::= \"\\q\"",
        "root ::= \"\\ud800\"",
        "root ::= a{1",
        "::= a"}) {
    EXPECT_NE(message(broken), "") << broken;
  }
}

}  // namespace
}  // namespace saker::text
