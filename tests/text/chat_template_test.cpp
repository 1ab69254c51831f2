// SPDX-License-Identifier: Apache-2.0
#include "saker/text/chat_template.h"

#include "tests/support/expect_error.h"
#include "tests/support/temporary_dir.h"
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

namespace saker::text {
namespace {

using testing::expect_error;
using testing::TemporaryDir;

// NOLINTNEXTLINE(readability-identifier-naming)
const Json kMessages = {{{"role", "user"}, {"content", "Hi <b> é"}}};

std::string render(const std::string& source, const Json& kwargs = Json::object()) {
  return ChatTemplate(source).render(kMessages, {.tools = {}, .kwargs = kwargs});
}

TEST(ChatTemplate, RendersMessages) {
  const ChatTemplate chat(
      "{{ bos_token }}{% for m in messages %}\n<|{{ m.role }}|>{{ m['content'] | trim }}<|end|>\n"
      "{% endfor %}\n{% if add_generation_prompt %}<|assistant|>{% endif %}",
      {{"bos_token", "<s>"}}
  );
  const Json messages = {
      {{"role", "system"}, {"content", " Be brief.\n"}}, {{"role", "user"}, {"content", "Hi"}}
  };
  const std::string turns = "<s><|system|>Be brief.<|end|>\n<|user|>Hi<|end|>\n";
  EXPECT_EQ(chat.render(messages), turns + "<|assistant|>");
  EXPECT_EQ(chat.render(messages, {.tools = {}, .add_generation_prompt = false}), turns);
}

TEST(ChatTemplate, TakesToolsAndOtherVariables) {
  const std::string source =
      "{{ tools is none }} {{ enable_thinking is defined and enable_thinking }} {{ eos_token }}";
  const ChatTemplate chat(source, {{"eos_token", "</s>"}});
  EXPECT_EQ(chat.render(kMessages), "True False </s>");
  EXPECT_EQ(
      chat.render(kMessages, {.tools = Json::array(), .kwargs = {{"enable_thinking", true}}}),
      "False True </s>"
  );
  EXPECT_EQ(chat.render(kMessages, {.tools = {}, .kwargs = {{"eos_token", "X"}}}), "True False X");
}

TEST(ChatTemplate, WritesValuesAsPython) {
  EXPECT_EQ(
      render("{{ [1e20, 0.1, 1e16, 1e-5, -0.0, none, true] }}"),
      "[1e+20, 0.1, 1e+16, 1e-05, -0.0, None, True]"
  );
  EXPECT_EQ(render("{{ 2.50 ~ [\"it's\", '\\n'] }}"), R"(2.5["it's", '\n'])");
  EXPECT_EQ(render("{{ ('a',) }} {{ {'k': 'v'} }}"), "('a',) {'k': 'v'}");
  EXPECT_EQ(render("{{ x }}", {{"x", "\u200b"}}), "\u200b");
  EXPECT_EQ(render("{{ [x] }}", {{"x", "\u200b"}}), R"(['\u200b'])");
}

TEST(ChatTemplate, WritesJsonAsPython) {
  const Json value = {{"b", {1, 2.0, nullptr}}, {"a", "<é \"\n\x7f"}, {"e", Json::object()}};
  EXPECT_EQ(
      render("{{ x|tojson }}", {{"x", value}}),
      "{\"b\": [1, 2.0, null], \"a\": \"<é \\\"\\n\x7f\", \"e\": {}}"
  );
  EXPECT_EQ(
      render("{{ x|tojson(indent=1, sort_keys=true, ensure_ascii=true) }}", {{"x", value}}),
      "{\n \"a\": \"<\\u00e9 \\\"\\n\\u007f\",\n \"b\": [\n  1,\n  2.0,\n  null\n ],\n \"e\": {}\n}"
  );
  EXPECT_EQ(
      render("{{ x|tojson(separators=(',', ':')) }}", {{"x", {{"k", {1, 2}}}}}), "{\"k\":[1,2]}"
  );
}

TEST(ChatTemplate, KnowsTheExtensions) {
  EXPECT_EQ(
      render("{% generation %}\nx{% set y = 1 %}{% endgeneration %}{{ y is defined }}"), "xFalse"
  );
  EXPECT_EQ(
      render("{% for i in range(9) %}{% if i == 2 %}{% break %}{% endif %}{{ i }}{% endfor %}"),
      "01"
  );
  const auto year = render("{{ strftime_now('%Y') }}");
  EXPECT_GE(std::stoi(year), 2024);
  EXPECT_EQ(year.size(), 4U);
}

TEST(ChatTemplate, NormalizesMessages) {
  const std::string source = "{% for m in messages %}{{ m|tojson }};{% endfor %}";
  const Json messages = {
      {{"role", "user"}, {"content", nullptr}},
      {{"role", "assistant"}, {"reasoning", "hm"}, {"content", "ok"}},
  };
  EXPECT_EQ(
      ChatTemplate(source).render(messages),
      R"({"role": "user"};)"
      R"({"thinking": "hm", "role": "assistant", "reasoning": "hm", "content": "ok", "reasoning_content": "hm"};)"
  );
}

TEST(ChatTemplate, TellsWhatATemplateRaises) {
  expect_error(
      ErrorCode::kInvalidArgument,
      {"chat template", "line 2", "roles must alternate"},
      [] { render("\n{{ raise_exception('roles must\\nalternate') }}"); }
  );
  expect_error(ErrorCode::kInvalidArgument, {"undefined"}, [] { render("{{ a.b.c }}"); });
  expect_error(ErrorCode::kInvalidArgument, {"none"}, [] {
    render("{% for t in tools %}{% endfor %}");
  });
  expect_error(ErrorCode::kInvalidArgument, {"line 1"}, [] { render("{{ 'a' + 1 }}"); });
  expect_error(ErrorCode::kInvalidArgument, {}, [] { render("{% include '/etc/passwd' %}"); });
}

TEST(ChatTemplate, RefusesBrokenTemplates) {
  for (const auto* source : {"{% if %}", "{{ 1 +", "{% for x in y %}", "{% endif %}", "\xff"}) {
    expect_error(ErrorCode::kCorruptData, {"chat template"}, [&] { render(source); });
  }
  expect_error(ErrorCode::kCorruptData, {"bytes"}, [] { render(std::string(1 << 20, 'x')); });
}

// Each of these would run for ever, or fill the memory, or overflow the stack.
TEST(ChatTemplate, BoundsHostileTemplates) {
  const std::string loop = "{% for i in range(99999) %}";
  const std::vector<std::string> hostile{
      loop + loop + loop + "{% endfor %}{% endfor %}{% endfor %}",
      loop + loop + std::string(1000, 'x') + "{% endfor %}{% endfor %}",
      "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
      "{% macro m() %}{{ m() }}{{ m() }}{% endmacro %}{{ m() }}",
      "{% set n = namespace(x='xx') %}" + loop + "{% set n.x = n.x ~ n.x %}{% endfor %}",
      "{% set n = namespace(x='xx') %}" + loop + "{% set n.x = n.x + n.x %}{% endfor %}",
      "{% set n = namespace(x=[1]) %}" + loop + "{% set n.x = n.x + n.x %}{% endfor %}",
      "{% set n = namespace(x='xx') %}" + loop +
          "{% set n.x = n.x.replace('x', n.x) %}{% endfor %}",
      "{% set n = namespace(x=['x']) %}" + loop + "{% set n.x = [n.x, n.x] %}{% endfor %}{{ n.x }}",
      "{% set n = namespace(x='xx') %}" + loop + "{% set n.x = [n.x, n.x]|join(n.x) %}{% endfor %}",
      "{% set k = 99999999 %}{{ 'abcdefgh' * k }}",
      "{{ 'abcdefgh' * 99999999 }}",
      "{{ ('x' * 9999) * 99999 }}",
      "{{ [1] * 99999999 }}",
      "{{ (1, 2) * 99999999 }}",
      "{{ '%999999999d'|format(1) }}",
      "{{ '{:>999999999}'.format(1) }}",
      "{{ '%999999999d' % 1 }}",
      "{{ 'x'|indent(999999999, true) }}",
      "{{ [1]|batch(999999999999, 0) }}",
      "{{ {'a': 1}|tojson(indent=999999999) }}",
      "{{ " + std::string(60'000, '(') + "1 }}",
      "{{ x" + std::string(60'000, '[') + " }}",
  };
  for (const auto& source : hostile) {
    EXPECT_THROW(render(source), Error) << source.substr(0, 100);
  }
}

TEST(ChatTemplate, SurvivesDeepValues) {
  const std::string deep =
      "{% set n = namespace(x=[]) %}{% for i in range(9) %}{% for j in range(20000) %}"
      "{% set n.x = [n.x] %}{% endfor %}{% endfor %}";
  EXPECT_EQ(render(deep + "done"), "done");
  EXPECT_THROW(render(deep + "{{ n.x }}"), Error);
  EXPECT_THROW(render(deep + "{{ n.x|tojson }}"), Error);
}

TEST(ChatTemplate, RefusesMalformedArguments) {
  const ChatTemplate chat("x");
  for (const Json& messages :
       {Json(nullptr), Json::array(), Json::object(), Json{1, 2}, Json("text")}) {
    expect_error(ErrorCode::kInvalidArgument, {"messages"}, [&] { chat.render(messages); });
  }
  expect_error(ErrorCode::kInvalidArgument, {"tools"}, [&] {
    chat.render(kMessages, {.tools = Json("x")});
  });
  expect_error(ErrorCode::kInvalidArgument, {"variables"}, [&] {
    chat.render(kMessages, {.tools = {}, .kwargs = Json::array()});
  });
  expect_error(ErrorCode::kInvalidArgument, {"messages"}, [&] {
    chat.render(kMessages, {.tools = {}, .kwargs = {{"messages", 1}}});
  });
  expect_error(ErrorCode::kInvalidArgument, {"UTF-8"}, [&] {
    chat.render({{{"role", "user"}, {"content", "\xff"}}});
  });
}

TEST(ChatTemplate, IsFoundInTheOrderOfTransformers) {
  const TemporaryDir dir;
  EXPECT_FALSE(ChatTemplate::load(dir.path()).has_value());
  dir.write(
      "tokenizer_config.json",
      R"({"chat_template": "config {{ bos_token }}", "bos_token": {"content": "<s>"}})"
  );
  EXPECT_EQ(ChatTemplate::load(dir.path())->render(kMessages), "config <s>");
  dir.write("chat_template.json", R"({"chat_template": "json {{ bos_token }}"})");
  EXPECT_EQ(ChatTemplate::load(dir.path())->render(kMessages), "json <s>");
  dir.write("chat_template.jinja", "jinja {{ bos_token }}");
  EXPECT_EQ(ChatTemplate::load(dir.path())->render(kMessages), "jinja <s>");
  dir.write("additional_chat_templates/tool_use.jinja", "tools");
  EXPECT_EQ(ChatTemplate::load(dir.path())->render(kMessages, {.tools = Json::array()}), "tools");
}

TEST(ChatTemplate, ChoosesByName) {
  const TemporaryDir dir;
  dir.write(
      "tokenizer_config.json", R"({"chat_template": [
      {"name": "default", "template": "plain"}, {"name": "tool_use", "template": "tools"}, {"name": "bad", "template": "{%"}]})"
  );
  const auto chat = ChatTemplate::load(dir.path());
  EXPECT_EQ(chat->render(kMessages), "plain");
  EXPECT_EQ(chat->render(kMessages, {.tools = Json::array()}), "tools");
  dir.write("tokenizer_config.json", R"({"chat_template": [{"name": "rag", "template": "x"}]})");
  expect_error(ErrorCode::kUnsupported, {"rag", "default"}, [&] {
    ChatTemplate::load(dir.path())->render(kMessages);
  });
  dir.write("tokenizer_config.json", R"({"chat_template": 3})");
  expect_error(ErrorCode::kCorruptData, {"chat_template", "3"}, [&] {
    ChatTemplate::load(dir.path());
  });
}

TEST(ChatTemplate, ServesManyThreads) {
  const ChatTemplate chat("{{ messages[0].content }}");
  constexpr int kThreads = 4;
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&chat] {
      for (int round = 0; round < 50; ++round) {
        EXPECT_EQ(chat.render(kMessages), "Hi <b> é");
      }
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
}

}  // namespace
}  // namespace saker::text
