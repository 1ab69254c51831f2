// SPDX-License-Identifier: Apache-2.0
#include "saker/text/chat_template.h"

#include "tests/support/expect_error.h"
#include "tests/support/temporary_dir.h"
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
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
  return ChatTemplate(source).render(kMessages, {.tools = {}, .template_kwargs = kwargs});
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
      chat.render(
          kMessages, {.tools = Json::array(), .template_kwargs = {{"enable_thinking", true}}}
      ),
      "False True </s>"
  );
  EXPECT_EQ(
      chat.render(kMessages, {.tools = {}, .template_kwargs = {{"eos_token", "X"}}}), "True False X"
  );
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

struct Case {
  std::string source;
  std::string text;
};

void expect_texts(const std::vector<Case>& cases) {
  const Json variables = {
      {"schema", {{"type", "array"}, {"get", 1}}},
      {"rows", {{{"a", 2}, {"b", "x"}}, {{"a", 1}, {"b", "Y"}}, {{"a", 3}, {"b", "x"}}}}
  };
  for (const auto& [source, text] : cases) {
    EXPECT_EQ(render(source, variables), text) << source;
  }
}

TEST(ChatTemplate, TakesWhatIsUndefinedAsEmpty) {
  expect_texts({
      {"{{ u|length }}{{ u|count }}{{ u|first is defined }}{{ u|last is defined }}", "00FalseFalse"
      },
      {"{{ u|list }}{{ u|items|list }}{{ u|sort }}{{ u|reverse|list }}{{ u|unique|list }}",
       "[][][][][]"},
      {"{{ u|join(',') }}|{{ u|sum }}|{{ u|map('upper')|list }}|{{ none|select|list }}", "|0|[]|[]"
      },
      {"{{ [u] }} {{ u is callable }} {{ 'a' in u }}", "[Undefined] True False"},
  });
  for (const auto* filter :
       {"length",
        "first",
        "last",
        "list",
        "items",
        "sort",
        "reverse",
        "sum",
        "unique",
        "join",
        "min",
        "batch(2)",
        "dictsort"}) {
    expect_error(ErrorCode::kInvalidArgument, {"line 1", "none"}, [&] {
      render(std::string("{{ none|") + filter + " }}");
    });
  }
}

TEST(ChatTemplate, HasPythonsMethodsAsValues) {
  expect_texts({
      {"{{ schema.items is defined }}{{ schema['items'] is defined }}{{ schema['get'] }}",
       "TrueTrue1"},
      {"{{ schema['items']['type'] is defined }}{{ schema.get('type') }}", "Falsearray"},
      {"{% set split = 'a,b'.split %}{{ split(',') }}{{ split is callable }}", "['a', 'b']True"},
      {"{% set ns = namespace(items=1, index=2) %}{{ ns.items }}{{ ns.index }}", "12"},
      {"{{ 'abcb'.rindex('b') }}{{ 'abc'.find('c', -1) }}{{ 'aXß'.swapcase() }}", "32AxSS"},
      {"{{ 'a\tb'.expandtabs(4) }}{{ 'Straße'.casefold() }}", "a   bstrasse"},
      {"{{ 'é'.center(4, '*') }}{{ '-5'.zfill(4) }}{{ 'a'.rjust(3) }}", "*é**-005  a"},
      {"{{ \"they're 3rd\".title() }} {{ \"they're 3rd\"|title }}", "They'Re 3Rd They're 3rd"},
      {"{{ '²'.isdigit() }}{{ '²'.isdecimal() }}{{ 'Ⅷ'.isalpha() }}", "TrueFalseFalse"},
      {"{{ [1, 2, 1].count(1) }}{{ (1, 2).index(2) }}{{ schema.copy() == schema }}", "21True"},
  });
  expect_error(ErrorCode::kInvalidArgument, {"append"}, [] { render("{{ [].append(1) }}"); });
}

TEST(ChatTemplate, FormatsAsPython) {
  expect_texts({
      {"{{ '%5s|%-3s|%.1s|%r' % ('é', 'ü', 'äö', 'x') }}", "    é|ü  |ä|'x'"},
      {"{{ '%(a)05d|%(a)x %%' % {'a': 42} }}", "00042|2a %"},
      {"{{ '%+d|%#x|%e|%g|%*d|%s' % (5, 255, 12345.678, 1e-10, 4, 7, [1.0]) }}",
       "+5|0xff|1.234568e+04|1e-10|   7|[1.0]"},
      {"{{ '{:>3}|{:*^5}|{:,.2f}|{:#06x}|{!r}'.format('é', 'b', 1234.5, 255, 'q') }}",
       "  é|**b**|1,234.50|0x00ff|'q'"},
      {"{{ '{a[k]} {0[1]:{w}} {{}}'.format([1, 2], a={'k': true}, w=3) }}", "True   2 {}"},
      {"{{ '%s and %s'|format(1, none) }}", "1 and None"},
      {"{{ strftime_now('%Y')|length }}{{ strftime_now('[%z%Z]%%') }}", "4[]%"},
  });
}

TEST(ChatTemplate, HasTheFiltersOfJinja) {
  expect_texts({
      {"{{ 'foo bar baz qux'|truncate(9) }}|{{ 'foo bar baz qux'|truncate(9, true) }}",
       "foo...|foo ba..."},
      {"{{ 'a b_c, d'|wordcount }}|{{ 'ab'|center(6) }}|", "3|  ab  |"},
      {"{{ 'well-known fact abcdefghijk'|wordwrap(6) }}", "well-\nknown\nfact a\nbcdefg\nhijk"},
      {"{{ 'a/b é'|urlencode }} {{ {'k y': 'é/'}|urlencode }}", "a/b%20%C3%A9 k+y=%C3%A9%2F"},
      {"{{ '<'|safe|forceescape }}{{ {'a': '<', 'b': none}|xmlattr }}", "&lt; a=\"&lt;\""},
      {"{{ {'b': 1, 'A': 3}|dictsort }}{{ {'b': 1, 'A': 3}|dictsort(true, 'value', true) }}",
       "[('A', 3), ('b', 1)][('A', 3), ('b', 1)]"},
      {"{{ '0x1f'|int(base=16) }} {{ 'z'|int(7) }} {{ '4.7'|int }} {{ '1_0'|float }}", "31 7 4 10.0"
      },
      {"{{ rows|sort(attribute='b,a')|map(attribute='a')|list }}", "[2, 3, 1]"},
      {"{% for b, items in rows|groupby('b') %}{{ b }}{{ items|length }};{% endfor %}", "x2;Y1;"},
      {"{{ rows|selectattr('a', '>=', 2)|rejectattr('b', 'eq', 'Y')|list|length }}", "2"},
      {"{{ [1, 2, 3, 4, 5]|slice(2, 0)|list }}{{ [1, 2, 3]|batch(2, 0)|list }}",
       "[[1, 2, 3], [4, 5, 0]][[1, 2], [3, 0]]"},
      {"{{ dict([('a', 1)], b=2) }}{% set c = cycler(1, 2) %}{{ c.next() }}{{ c.next() }}{{ "
       "c.next() }}",
       "{'a': 1, 'b': 2}121"},
      {"{% set j = joiner() %}{% for i in [1, 2] %}{{ j() }}{{ i }}{% endfor %}", "1, 2"},
      {"{{ 'abcdef'[4:1:-2] }}{{ (1, 2, 3)[::-1] }}{{ [1, 2][-1:] }}", "ec(3, 2, 1)[2]"},
      {"{% for c in 'ab' %}{{ loop.revindex }}{{ c }}{% endfor %}", "2a1b"},
      {"{% for i in [1, 1, 2] %}{{ loop.changed(i) }}{% endfor %}", "TrueFalseTrue"},
  });
  for (const auto* source :
       {"{{ none|random }}",
        "{{ [1, 'a']|sort }}",
        "{{ {[1]: 2} }}",
        "{{ none < n }}",
        "{{ [1] + (2,) }}",
        "{{ '%d' % 'x' }}",
        "{{ '%s' % () }}",
        "{{ 'x' % 1 }}",
        "{{ '{}'.format() }}"}) {
    expect_error(ErrorCode::kInvalidArgument, {"line 1"}, [&] { render(source); });
  }
}

TEST(ChatTemplate, GivesMacrosTheirOtherArguments) {
  const std::string macro =
      "{% macro m(a, b=2) %}{{ a }}{{ b }}{{ varargs }}{{ kwargs }}{% endmacro %}";
  expect_texts({
      {macro + "{{ m(1, 3, 4, x=5) }}", "13(4,){'x': 5}"},
      {macro + "{{ m(b=1, a=0) }}", "01(){}"},
      {macro + "{{ m(*[1, 2, 3], **{'y': 4}) }}", "12(3,){'y': 4}"},
      {"{% macro m() %}{{ caller() }}{{ kwargs }}{% endmacro %}{% call m(k=1) %}c{% endcall %}",
       "c{'k': 1}"},
  });
}

TEST(ChatTemplate, LeavesTextsThatOnlyLookLikeTags) {
  expect_texts({
      {"{{ '{% generation %}' }}{% raw %}{% endgeneration %}{% endraw %}{# {% generation %} #}",
       "{% generation %}{% endgeneration %}"},
      {"{% set x = '%}' %}{%- generation +%}{{ x }}{% endgeneration %}", "%}"},
      {R"({{ '\/' }}{{ '\/' == '\\/' }}{{ '\x41\101\U0001F600' }})", R"(\/TrueAA😀)"},
      {"a\r\n{% if true %}\r\nb\rc{% endif %}", "a\nb\nc"},
  });
  expect_error(ErrorCode::kCorruptData, {"\\N"}, [] { render(R"({{ '\N{NONE SUCH}' }})"); });
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

TEST(ChatTemplate, SwitchesThinking) {
  const ChatTemplate chat("{{ enable_thinking }} {{ thinking }} {{ thinking_mode }}");
  EXPECT_EQ(chat.render(kMessages), "  ");
  EXPECT_EQ(chat.render(kMessages, {.tools = {}, .think = true}), "True True enabled");
  EXPECT_EQ(chat.render(kMessages, {.tools = {}, .think = false}), "False False disabled");
  EXPECT_EQ(
      chat.render(
          kMessages, {.tools = {}, .think = false, .template_kwargs = {{"enable_thinking", true}}}
      ),
      "True False disabled"
  );
  EXPECT_TRUE(chat.switches_thinking());
  EXPECT_FALSE(ChatTemplate("{{ messages[0].content }}").switches_thinking());
  EXPECT_FALSE(ChatTemplate("{{ raise_exception('no') }}").switches_thinking());
}

TEST(ChatTemplate, NormalizesMessages) {
  const std::string source = "{% for m in messages %}{{ m|tojson }};{% endfor %}";
  const Json messages = {
      {{"role", "user"}, {"content", nullptr}},
      {{"role", "assistant"}, {"reasoning", "hm"}, {"content", "ok"}},
  };
  EXPECT_EQ(
      ChatTemplate(source).render(messages),
      R"({"role": "user", "content": ""};)"
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
  std::string sum = "(1";
  for (int i = 0; i < 9999; ++i) {
    sum += "+1";
  }
  sum += ")";
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
      "{{ (1,) * " + sum + " * " + sum + " }}",
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

// Each of these would make lists of gigabytes.
TEST(ChatTemplate, BoundsLists) {
  const std::string text =
      "{% set n = namespace(s='x ', l=[]) %}{% for i in range(24) %}{% set n.s = n.s + n.s %}{% "
      "endfor %}";
  for (const auto* list :
       {"n.s|list",
        "n.s.split()",
        "n.s.split(' ')",
        "n.s.rsplit()",
        "n.s.replace(' ', '\n').splitlines()",
        "n.s|batch(1)|list",
        "n.s|map('upper')|list",
        "n.s|select|list",
        "n.s|sort",
        "n.s|reverse|list"}) {
    EXPECT_THROW(render(text + "{% set n.l = " + list + " %}"), Error) << list;
  }
  const std::string often = "{% for i in range(999) %}{% set n.l = ";
  for (const auto* list : {"[n.l, range(99999)|list]", "(n.l, dict(range(99998)|batch(2)))"}) {
    EXPECT_THROW(render(text + often + list + " %}{% endfor %}"), Error) << list;
  }
  // What is let go does not count.
  EXPECT_EQ(render(text + "{% for i in range(300) %}{% set x = 'x' * 1000000 %}{% endfor %}"), "");
  std::string splat =
      "{% macro m() %}{{ varargs|length }}{% endmacro %}{% set l = range(99999)|list %}{{ m(*l";
  for (int i = 0; i < 9999; ++i) {
    splat += ",*l";
  }
  EXPECT_THROW(render(splat + ") }}"), Error);
}

// 300 lists hold the one before twice: to look at all of it takes for ever.
TEST(ChatTemplate, BoundsWorkOnSharedValues) {
  const std::string shared =
      "{% set n = namespace(a=[1], b=[1], t=(1,)) %}{% for i in range(300) %}{% set n.a = [n.a, "
      "n.a] %}"
      "{% set n.b = [n.b, n.b] %}{% set n.t = (n.t, n.t) %}{% endfor %}{{ ";
  for (const auto* work : {"n.a == n.b", "{n.t: 1}", "raise_exception(n.a)", "n.a is lower"}) {
    EXPECT_THROW(render(shared + work + " }}"), Error) << work;
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
    chat.render(kMessages, {.tools = {}, .template_kwargs = Json::array()});
  });
  expect_error(ErrorCode::kInvalidArgument, {"messages"}, [&] {
    chat.render(kMessages, {.tools = {}, .template_kwargs = {{"messages", 1}}});
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
  // That is for processors of images; a folder that has nothing else may use it.
  dir.write("chat_template.json", R"({"chat_template": "json {{ bos_token }}"})");
  EXPECT_EQ(ChatTemplate::load(dir.path())->render(kMessages), "config <s>");
  dir.write("chat_template.jinja", "jinja {{ bos_token }}");
  EXPECT_EQ(ChatTemplate::load(dir.path())->render(kMessages), "jinja <s>");
  dir.write("additional_chat_templates/tool_use.jinja", "tools");
  EXPECT_EQ(ChatTemplate::load(dir.path())->render(kMessages, {.tools = Json::array()}), "tools");
  dir.write("additional_chat_templates/default.jinja", "default");
  EXPECT_EQ(ChatTemplate::load(dir.path())->render(kMessages), "default");
  const TemporaryDir other;
  other.write("chat_template.json", R"({"chat_template": "json"})");
  EXPECT_EQ(ChatTemplate::load(other.path())->render(kMessages), "json");
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
  dir.write("tokenizer_config.json", R"({"chat_template": {"default": "x", "rag": "y"}})");
  EXPECT_EQ(ChatTemplate::load(dir.path())->render(kMessages), "x");
}

// Who renders nothing needs no template.
TEST(ChatTemplate, TellsOfDamageWhenItIsRendered) {
  const TemporaryDir dir;
  const auto damaged = [&](const char* file, const char* text, std::string_view says) {
    dir.write(file, text);
    const auto chat = ChatTemplate::load(dir.path());
    ASSERT_TRUE(chat.has_value());
    expect_error(ErrorCode::kCorruptData, {file, says}, [&] { chat->render(kMessages); });
    std::filesystem::remove(dir.path() / file);
  };
  damaged("tokenizer_config.json", R"({"chat_template": 3})", "got 3");
  damaged("tokenizer_config.json", R"({"chat_template": {"default": 3}})", "got 3");
  damaged("tokenizer_config.json", R"({"chat_template": "x",)", "byte");
  damaged("chat_template.json", "{", "byte");
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

TEST(ChatTemplate, ManyKeysOfAMessageTakeNoLonger) {
  constexpr int kKeys = 100'000;
  std::string text = R"([{"reasoning": "r", "none": null)";
  for (int i = 0; i < kKeys; ++i) {
    text += fmt::format(R"(, "key {}": {})", i, i);
  }
  const Json messages = parse_json(text + "}]", "messages");
  const ChatTemplate chat("{{ messages[0] | length }} {{ (messages[0] | list)[:3] }}");
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(chat.render(messages), "100003 ['thinking', 'reasoning', 'key 0']");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
}

}  // namespace
}  // namespace saker::text
