// SPDX-License-Identifier: Apache-2.0
// The language of chat templates: what jinja2 makes of it, as transformers sets it up.
#include "saker/base/error.h"
#include "saker/base/json/json.h"
#include "saker/text/chat_template.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace saker::text {
namespace {

std::string render(const std::string& source, const Json& kwargs = Json::object()) {
  const Json messages = {{{"role", "user"}, {"content", "Hi"}}};
  return ChatTemplate(source).render(messages, {.tools = {}, .template_kwargs = kwargs});
}

// Millions of steps: a long history, looked through for each of its messages.
TEST(TemplateLanguage, RendersLongHistories) {
  Json messages = Json::array();
  for (int i = 0; i < 1200; ++i) {
    messages.push_back({{"role", i % 2 == 0 ? "user" : "assistant"}, {"content", "text"}});
  }
  const ChatTemplate chat(
      "{% for m in messages %}{% set ns = namespace(n=0) %}{% for other in messages %}"
      "{% if other.role == m.role and loop.index0 < 5 %}{% set ns.n = ns.n + 1 %}{% endif %}"
      "{% endfor %}{{ ns.n }}{% endfor %}"
  );
  EXPECT_EQ(chat.render(messages).size(), 1200);
}

TEST(TemplateLanguage, HasTheScopesOfJinja) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"{% set x = 1 %}{% set y %}{% set x = 2 %}{{ x }}{% endset %}{{ x }}{{ y }}", "12"},
      {"{% set x = 1 %}{% filter upper %}{% set x = 2 %}{{ x }}{% endfilter %}{{ x }}", "21"},
      {"{% for i in [] %}{% else %}{% set z = 9 %}{{ z }}{% endfor %}{{ z is defined }}", "9False"},
      {"{% set a = 9 %}{% with a = 1, b = a %}{{ a }}{{ b }}{% endwith %}{{ a }}", "199"},
      {"{% for m in messages %}{% if given %}T{% endif %}{% endfor %}{% set given = 0 %}", ""},
      {"{% macro m() %}{{ n }}{% endmacro %}{{ m() }}{% set n = 1 %}{{ m() }}", "1"},
      {"{% if false %}{% set given = 1 %}{% endif %}{{ given }}", "yes"},
      {"{% set x = 1 %}{% for i in [1, 2] %}{{ x }}{% set x = 3 %}{{ x }}{% endfor %}{{ x }}",
       "13131"},
      {"{% set x = 1 %}{% generation %}{% set x = 2 %}{{ x }}{% endgeneration %}{{ x }}", "21"},
      {"{% set n = namespace(x=0) %}{% for i in [1, 2] if not n.x %}{{ i }}{% set n.x = 1 %}"
       "{% endfor %}",
       "1"},
  };
  for (const auto& [source, text] : cases) {
    EXPECT_EQ(render(source, {{"given", "yes"}}), text) << source;
  }
}

TEST(TemplateLanguage, CallsMacrosAsJinja) {
  const std::string namespaces = "{% set n = namespace(x=0) %}";
  const std::vector<std::pair<std::string, std::string>> cases{
      {"{% macro m(a, h='<' ~ a ~ '>') %}{{ h }}{% endmacro %}{{ m('x') }}{{ m('x', 1) }}", "<x>1"},
      {"{% macro m(a, b=a, c=b) %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ m(1) }}{{ m(1, 2) }}",
       "111122"},
      {namespaces + "{% macro m() %}{% set n.x = 3 %}{% endmacro %}{{ m() }}{{ n.x }}", "3"},
      {"{% macro m() %}{% set n.x = 3 %}{% endmacro %}" + namespaces + "{{ m() }}{{ n.x }}", "3"},
      {namespaces + "{% macro m() %}{{ caller() }}{% endmacro %}{% call m() %}{% set n.x = 3 %}"
                    "{% endcall %}{{ n.x }}",
       "3"},
      {"{% macro m(d) %}{% if d %}x{{ m(d - 1) }}{% endif %}{% endmacro %}{{ m(190)|length }}",
       "190"},
      {"{% for x in [[1, [2]]] recursive %}{{ loop(x) if x is iterable else x }}{% endfor %}", "12"
      },
  };
  for (const auto& [source, text] : cases) {
    EXPECT_EQ(render(source), text) << source;
  }
}

TEST(TemplateLanguage, ReadsExpressionsAsJinja) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"{{ {'a': 1}[['a', 'b']] is defined }}", "False"},
      {"{{ {'a': 1}[{'x': 1}]|default('none') }}", "none"},
      {"{{ '<b>x &amp; y</b>'|striptags }}", "x & y"},
      {"{{ 1024|filesizeformat }} {{ 1024|filesizeformat(true) }}", "1.0 kB 1.0 KiB"},
      {"{{ {'b': 1, 'a': 2}|pprint }}", "{'a': 2, 'b': 1}"},
      {"{{ dict.fromkeys(['a'], 1) }} {{ range(3) }}", "{'a': 1} range(0, 3)"},
      {"{{ (3 > 2) + (3 > 1) }} {{ -true }} {{ {1: 'a', true: 'b'} }}", "2 -1 {1: 'b'}"},
      {"{{ 10 ** 40 }} {{ 2 ** 3 ** 2 }} {{ -2 ** 2 }}",
       "10000000000000000000000000000000000000000 64 4"},
      {"{{ 'ab'.encode() }} {{ 2.0.is_integer() }} {{ '\\N{BULLET}' }}", "b'ab' True \u2022"},
      {"{{ self is defined }} {{ 'a' 'b' }} {{ 1, 2 }}", "True ab (1, 2)"},
      {"{{ 'abc'.translate({97: 'x', 98: none}) }}", "xc"},
      {"{% if []|select %}yes{% endif %}{{ {'a': 1}.items() }}", "yesdict_items([('a', 1)])"},
      {"{{ (3 < 2)[1:] is defined }} {{ [1, 2][1:] }} {{ none[1:] }}", "False [2] "},
      {"{{ 'a' % missing }}{{ '%s' % missing }}", "a"},
  };
  for (const auto& [source, text] : cases) {
    EXPECT_EQ(render(source), text) << source;
  }
  EXPECT_THROW(render("{{ x is defined is true }}"), Error);
  EXPECT_THROW(render("{{ [1]|map('upper')|length }}"), Error);
  EXPECT_THROW(render("{{ missing|attr('x') }}"), Error);
  EXPECT_THROW(render("{{ 'a'.encode() in 'ab' }}"), Error);
  EXPECT_THROW(render("{{ (messages|length)[1:] }}"), Error);
  EXPECT_THROW(render("{% set x = none[1:] %}"), Error);
  EXPECT_THROW(render("{% if 2[1:] %}{% endif %}"), Error);
}

// The digits of what comes in go out again.
TEST(TemplateLanguage, KeepsNumbers) {
  const std::string text =
      R"({"lat": 141.22609302871155, "p": 0.10183730835485527, "t": 1700541068.2753217, )"
      R"("wei": 1000000000000000000001, "low": -18446744073709551617, "inf": Infinity, )"
      R"("none": NaN, "far": 1e400})";
  std::string written = text;
  written.replace(written.find("1e400"), 5, "Infinity");
  const Json value = parse_json(text, "a test");
  EXPECT_EQ(render("{{ x|tojson }}", {{"x", value}}), written);
  EXPECT_EQ(
      render("{{ x.wei + 1 }} {{ x.low // 2 }} {{ x.wei is integer }}", {{"x", value}}),
      "1000000000000000000002 -9223372036854775809 True"
  );
  std::mt19937_64 random(1);
  for (int i = 0; i < 5000; ++i) {
    const auto number = std::bit_cast<double>(random());
    if (std::isfinite(number)) {
      const auto out = render("{{ x|tojson }}", {{"x", number}});
      EXPECT_EQ(parse_json(out, "a test").get<double>(), number) << out;
    }
  }
}

}  // namespace
}  // namespace saker::text
