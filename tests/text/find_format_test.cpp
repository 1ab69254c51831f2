// SPDX-License-Identifier: Apache-2.0
#include "saker/text/output/find_format.h"

#include "saker/text/output/answer_collector.h"
#include "saker/text/output/output_parser.h"

#include "tests/text/output_answers.h"
#include <gtest/gtest.h>

#include <string>

namespace saker::text {
namespace {

ChatTemplate chat(const std::string& calls, const std::string& around = "") {
  return ChatTemplate(
      "{% if tools %}{{ tools | tojson }}{% endif %}{% for m in messages %}<|im_start|>{{ m.role "
      "}}\n"
      "{{ m.content }}" +
      around + "{% for c in m.tool_calls or [] %}{% set f = c.function %}" + calls +
      "{% endfor %}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n"
      "{% endif %}"
  );
}

std::string name_of(const ChatTemplate& chat) {
  return find_output_format(&chat, nullptr, nullptr).name;
}

TEST(FindFormat, ATemplateShowsItsForm) {
  EXPECT_EQ(
      name_of(chat(
          "<tool_call>\n{\"name\": \"{{ f.name }}\", \"arguments\": {{ f.arguments | tojson }}}\n"
          "</tool_call>\n"
      )),
      "hermes"
  );
  EXPECT_EQ(
      name_of(chat("<tool_call>\n<function={{ f.name }}>\n{% for k, v in f.arguments.items() "
                   "%}<parameter={{ k }}>\n"
                   "{{ v }}\n</parameter>\n{% endfor %}</function>\n</tool_call>")),
      "qwen3_coder"
  );
  EXPECT_EQ(name_of(chat("[TOOL_CALLS]{{ f.name }}[ARGS]{{ f.arguments | tojson }}")), "mistral");
  EXPECT_EQ(
      name_of(chat("{\"name\": \"{{ f.name }}\", \"parameters\": {{ f.arguments | tojson }}}")),
      "llama3"
  );
}

// A form that is not in the table.
TEST(FindFormat, AnUnknownFormFollowsFromDifferences) {
  const ChatTemplate objects =
      chat("<<call>>{\"fn\": \"{{ f.name }}\", \"args\": {{ f.arguments | tojson }}}<</call>>");
  const OutputFormat format = find_output_format(&objects, nullptr, nullptr);
  ASSERT_EQ(format.name, "derived");
  EXPECT_EQ(format.calls.front().open, "<<call>>");
  EXPECT_EQ(format.calls.front().close, "<</call>>");
  const AnswerParts parts = parse_pieces(
      format,
      {"Hi. <<call>>{\"fn\": \"get_time\", \"args\": {\"zone\": 1}}<</call>>"},
      test_tools(),
      AnswerEnd::kWhole
  );
  ASSERT_EQ(parts.tool_calls.size(), 1U);
  EXPECT_EQ(parts.tool_calls.front().arguments, "{\"zone\": 1}");
  EXPECT_EQ(parts.content, "Hi.");

  const ChatTemplate named = chat("@@{{ f.name }}=>{{ f.arguments | tojson }}@end@");
  const OutputFormat other = find_output_format(&named, nullptr, nullptr);
  ASSERT_EQ(other.name, "derived");
  EXPECT_EQ(other.calls.front().call_open, "@@");
  EXPECT_EQ(other.calls.front().name_close, "=>");
  EXPECT_EQ(other.calls.front().call_close, "@end@");
}

TEST(FindFormat, WithoutCallsWordsTell) {
  const ChatTemplate words("{{ messages[0].content }}{# <|python_tag|> #}");
  EXPECT_EQ(name_of(words), "llama3");
  EXPECT_EQ(name_of(ChatTemplate("{{ messages[0].content }}")), "plain");
  EXPECT_EQ(name_of(ChatTemplate("{{ broken")), "plain");
  EXPECT_EQ(find_output_format(nullptr, nullptr, nullptr).name, "plain");
}

TEST(FindFormat, ResponseTemplates) {
  const Json hermes =
      Json::parse(R"j({"version": 1, "start_anchor": "<|im_start|>assistant\n", "fields": {
    "thinking": {"open": "<reason>", "close": "</reason>"},
    "tool_calls": {"open_pattern": "\\s*<tool_call>", "close": "</tool_call>", "repeats": true,
      "content": "json", "transform": {"type": "function", "function": "{content}"}},
    "content": {"close": "<|im_end|>"}}})j");
  auto format = format_of_response_template(hermes);
  ASSERT_TRUE(format);
  const AnswerParts parts = parse_pieces(
      *format,
      {"<reason>a</reason><tool_call>{\"name\": \"get_time\", \"arguments\": {}}</tool_call>"},
      test_tools(),
      AnswerEnd::kWhole
  );
  EXPECT_EQ(parts.reasoning, "a");
  EXPECT_EQ(parts.tool_calls.size(), 1U);

  Json tags = hermes;
  tags["fields"]["tool_calls"] = Json::parse(R"j({
    "open_pattern": "\\s*<tool_call>\\s*<function=(?P<name>[^>\\n]+)>",
    "close_pattern": "</function>\\s*</tool_call>", "content": "xml-inline"})j");
  format = format_of_response_template(tags);
  ASSERT_TRUE(format);
  EXPECT_EQ(format->calls.front().call_open, "<function=");

  Json own = hermes;
  own["fields"]["tool_calls"] =
      Json::parse(R"j({"open": "[[call]]", "close": "[[end]]", "content": "json"})j");
  format = format_of_response_template(own);
  ASSERT_TRUE(format);
  EXPECT_EQ(format->calls.front().open, "[[call]]");

  Json later = hermes;
  later["version"] = 2;
  EXPECT_FALSE(format_of_response_template(later));
  EXPECT_FALSE(format_of_response_template(Json()));
  EXPECT_FALSE(format_of_response_template(Json("text")));
}

TEST(FindFormat, Capabilities) {
  const ChatTemplate full = chat("<tool_call>{{ f.name }}</tool_call>");
  const TemplateCapabilities found = full.capabilities();
  EXPECT_TRUE(found.takes_tools);
  EXPECT_TRUE(found.takes_calls);
  EXPECT_TRUE(found.takes_parallel_calls);
  EXPECT_TRUE(found.takes_results);
  EXPECT_TRUE(found.takes_system);
  EXPECT_TRUE(found.takes_late_system);
  EXPECT_FALSE(found.takes_developer);
  const TemplateCapabilities none = ChatTemplate("{{ messages[0].content }}").capabilities();
  EXPECT_FALSE(none.takes_tools || none.takes_calls || none.takes_results);
}

}  // namespace
}  // namespace saker::text
