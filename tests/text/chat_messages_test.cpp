// SPDX-License-Identifier: Apache-2.0
#include "saker/text/chat_messages.h"

#include "saker/text/chat_template.h"

#include "tests/support/expect_error.h"
#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace saker::text {
namespace {

using testing::expect_error;

// Each message as "role: content", a call behind it as `call` writes it.
std::string source(std::string_view call) {
  return "{% for m in messages %}{{ m.role }}: {{ m.content }}{% for c in m.tool_calls or [] %}" +
         std::string(call) + "{% endfor %};{% endfor %}";
}

const std::string kItems = source(
    "{% for k, v in c.function.arguments|items %}<{{ c.function.name }} {{ k }}={{ v }}>"
    "{% endfor %}"
);
const std::string kJson = source("<{{ c.function.name }} {{ c.function.arguments|tojson }}>");
const std::string kEither = source(
    "<{{ c.function.name }} {% if c.function.arguments is string %}{{ c.function.arguments }}"
    "{% else %}{{ c.function.arguments|tojson }}{% endif %}>"
);
const std::string kText = source("{{ '<' + c.function.name + ' ' + c.function.arguments + '>' }}");
const std::string kPrinted = source("<{{ c.function.name }} {{ c.function.arguments }}>");

Json user(const Json& content) {
  return {{"role", "user"}, {"content", content}};
}

Json called(const Json& content, const Json& arguments) {
  const Json function = {{"name", "look"}, {"arguments", arguments}};
  return {
      {"role", "assistant"},
      {"content", content},
      {"tool_calls", {{{"id", "call_1"}, {"type", "function"}, {"function", function}}}},
  };
}

Json result(const Json& content) {
  return {{"role", "tool"}, {"tool_call_id", "call_1"}, {"content", content}};
}

std::string render(const std::string& source, const Json& messages) {
  return ChatTemplate(source).render(messages);
}

std::string render_call(const std::string& source, const Json& arguments) {
  return render(source, Json::array({user("go"), called(nullptr, arguments), result("ok")}));
}

TEST(ChatMessages, ArgumentsComeAsTheTemplateTakesThem) {
  const Json text = R"({"city":  "Bern"})";
  const Json object = {{"city", "Bern"}};
  const std::string before = "user: go;assistant: <look ";
  const std::string after = ">;tool: ok;";
  for (const Json& given : {text, object}) {
    EXPECT_EQ(render_call(kItems, given), before + "city=Bern" + after);
    for (const auto& source : {kJson, kEither}) {
      EXPECT_EQ(render_call(source, given), before + R"({"city": "Bern"})" + after);
    }
  }
  // As it was given, where the template wants text.
  for (const auto& source : {kText, kPrinted}) {
    EXPECT_EQ(render_call(source, text), before + R"({"city":  "Bern"})" + after);
    EXPECT_EQ(render_call(source, object), before + R"({"city": "Bern"})" + after);
  }
}

TEST(ChatMessages, ArgumentsThatAreNoObjectStayWhole) {
  EXPECT_EQ(
      render_call(kEither, R"({"city": )"), "user: go;assistant: <look {\"city\": >;tool: ok;"
  );
  EXPECT_EQ(render_call(kText, "[1]"), "user: go;assistant: <look [1]>;tool: ok;");
  EXPECT_EQ(
      render_call(kItems, R"({"city": )"),
      "user: go;assistant: <look arguments={\"city\": >;tool: ok;"
  );
  EXPECT_EQ(
      render_call(kJson, R"({"city": )"), R"(user: go;assistant: <look "{\"city\": ">;tool: ok;)"
  );
  const std::string deep(1000, '[');
  EXPECT_NE(render_call(kItems, deep).find(deep), std::string::npos);
}

TEST(ChatMessages, NoArgumentsAreAnEmptyObject) {
  for (const Json& none : {Json(nullptr), Json(""), Json("  "), Json("null"), Json("{}")}) {
    EXPECT_EQ(render_call(kJson, none), "user: go;assistant: <look {}>;tool: ok;");
    EXPECT_EQ(render_call(kItems, none), "user: go;assistant: ;tool: ok;");
  }
  EXPECT_EQ(render_call(kText, nullptr), "user: go;assistant: <look {}>;tool: ok;");
}

TEST(ChatMessages, CallsThatOnlyShowBesideNullGetIt) {
  const std::string source =
      "{% for m in messages %}{{ m.role }}: {% if m.content is none %}"
      "{% for c in m.tool_calls %}{{ '<' + c.function.name + c.function.arguments + '>' }}{% "
      "endfor %}"
      "{% else %}{{ m.content }}{% endif %};{% endfor %}";
  for (const Json& content : {Json(nullptr), Json("")}) {
    EXPECT_EQ(
        render(source, Json::array({user("go"), called(content, "{}")})),
        "user: go;assistant: <look{}>;"
    );
  }
  EXPECT_EQ(
      render(source, Json::array({user("go"), called("I look.", "{}")})),
      "user: go;assistant: I look.;assistant: <look{}>;"
  );
}

TEST(ChatMessages, NullContentIsEmpty) {
  EXPECT_EQ(
      render(
          "{% for m in messages %}{{ m.role + ':' + m.content }};{% endfor %}",
          Json::array({user(nullptr), {{"role", "assistant"}, {"content", nullptr}}})
      ),
      "user:;assistant:;"
  );
  Json absent = called("", "{}");
  absent.erase("content");
  EXPECT_EQ(
      render("{% for m in messages %}{{ m.role + m.content }};{% endfor %}", Json::array({absent})),
      "assistant;"
  );
}

TEST(ChatMessages, EmptyListsOfCallsAreNone) {
  Json empty = user("hi");
  empty["tool_calls"] = Json::array();
  EXPECT_EQ(render("{{ 'tool_calls' in messages[0] }}", Json::array({empty})), "False");
}

TEST(ChatMessages, PartsOfTextAreJoined) {
  const Json parts = {
      {{"type", "text"}, {"text", "who "}}, {{"type", "input_text"}, {"text", "is "}}, "it?"
  };
  const std::string plain = "{% for m in messages %}{{ m.role + ': ' + m.content }};{% endfor %}";
  const std::string printed = "{% for m in messages %}{{ m.role }}: {{ m.content }};{% endfor %}";
  const std::string either =
      "{% for m in messages %}{{ m.role }}: {% if m.content is string %}{{ m.content }}{% else %}"
      "{% for p in m.content %}{{ p.text }}{% endfor %}{% endif %};{% endfor %}";
  for (const auto& source : {plain, printed, either}) {
    for (const char* role : {"system", "user", "assistant", "tool"}) {
      EXPECT_EQ(
          render(source, Json::array({{{"role", role}, {"content", parts}}})),
          std::string(role) + ": who is it?;"
      );
    }
    EXPECT_EQ(render(source, Json::array({user(Json::array())})), "user: ;");
  }
}

TEST(ChatMessages, TextsBecomePartsWhereNothingElseShows) {
  const std::string source =
      "{% for m in messages %}{{ m.role }}: {% for p in m.content %}{{ p.text }}|{% endfor %};"
      "{% endfor %}";
  EXPECT_EQ(render(source, Json::array({user("hi")})), "user: hi|;");
  EXPECT_EQ(
      render(
          source,
          Json::array({user({{{"type", "text"}, {"text", "a"}}, {{"type", "text"}, {"text", "b"}}})}
          )
      ),
      "user: ab|;"
  );
}

TEST(ChatMessages, OtherPartsAreForTemplatesThatTakeThem) {
  const Json image = user({{{"type", "image_url"}, {"image_url", {{"url", "x"}}}}});
  const std::string source =
      "{% for p in messages[0].content %}{% if p.type == 'text' %}{{ p.text }}{% else %}<image>"
      "{% endif %}{% endfor %}";
  EXPECT_EQ(render(source, Json::array({image})), "<image>");
  expect_error(ErrorCode::kUnsupported, {"image_url", "text"}, [&] {
    render(kJson, Json::array({image}));
  });
  expect_error(ErrorCode::kUnsupported, {"image_url"}, [&] {
    require_text_only(Json::array({image}));
  });
  EXPECT_NO_THROW(
      require_text_only(Json::array({user("hi"), user({{{"type", "text"}, {"text", "a"}}})}))
  );
}

TEST(ChatMessages, ThoughtsAmongPartsAreReasoning) {
  const Json thinking = {{"type", "thinking"}, {"thinking", {{{"type", "text"}, {"text", "hm"}}}}};
  const Json message = {
      {"role", "assistant"}, {"content", {thinking, {{"type", "text"}, {"text", "yes"}}}}
  };
  EXPECT_EQ(
      render(
          "{{ messages[0].reasoning_content }} {{ messages[0].content }}", Json::array({message})
      ),
      "hm yes"
  );
}

TEST(ChatMessages, DevelopersAreTheSystemWhereNothingElseIsKnown) {
  const Json messages = {{{"role", "developer"}, {"content", "be brief"}}, user("hi")};
  EXPECT_EQ(render("{% for m in messages %}{{ m.role }};{% endfor %}", messages), "system;user;");
  EXPECT_EQ(
      render(
          "{% for m in messages %}{{ m.role }}{% if m.role == 'developer' %}={% endif %}"
          "{{ m.content }};{% endfor %}",
          messages
      ),
      "developer=be brief;userhi;"
  );
  // Named, and yet not shown.
  EXPECT_EQ(
      render(
          "{# not for a developer #}{% for m in messages %}{% if m.role in ['system', 'user'] %}"
          "{{ m.content }};{% endif %}{% endfor %}",
          messages
      ),
      "be brief;hi;"
  );
}

TEST(ChatMessages, FirstSystemsAreJoinedWhereOneIsTaken) {
  const Json messages = {
      {{"role", "system"}, {"content", "A"}}, {{"role", "developer"}, {"content", "B"}}, user("hi")
  };
  const std::string strict =
      "{% for m in messages %}{% if m.role == 'system' and not loop.first %}"
      "{{ raise_exception('late') }}{% endif %}{{ m.role }}: {{ m.content }};{% endfor %}";
  EXPECT_EQ(render(strict, messages), "system: A\n\nB;user: hi;");
  EXPECT_EQ(render(kJson, messages), "system: A;system: B;user: hi;");
  // The developer's own place is taken.
  EXPECT_EQ(
      render(
          "{% for m in messages %}{% if m.role == 'user' or loop.first and m.role in "
          "['system', 'developer'] %}{{ m.role }}: {{ m.content }};{% endif %}{% endfor %}",
          messages
      ),
      "system: A\n\nB;user: hi;"
  );
}

TEST(ChatMessages, TheSystemSpeaksBeforeTheFirstQuestionWhereItHasNoPlace) {
  const Json messages = {{{"role", "system"}, {"content", "A"}}, user("hi")};
  const std::string source =
      "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no system') }}"
      "{% endif %}{{ m.role }}: {{ m.content }};{% endfor %}";
  EXPECT_EQ(render(source, messages), "user: A\n\nhi;");
  // What fails anyway fails for its own reason.
  expect_error(ErrorCode::kInvalidArgument, {"never"}, [&] {
    render("{{ raise_exception('never') }}", messages);
  });
}

TEST(ChatMessages, FunctionCallsAreToolCalls) {
  const Json call = {
      {"role", "assistant"},
      {"content", nullptr},
      {"function_call", {{"name", "look"}, {"arguments", "{\"city\": \"Bern\"}"}}},
  };
  const Json answer = {{"role", "function"}, {"name", "look"}, {"content", "ok"}};
  EXPECT_EQ(
      render(kItems, Json::array({user("go"), call, answer})),
      "user: go;assistant: <look city=Bern>;tool: ok;"
  );
}

TEST(ChatMessages, IdsAndNamesAreFilledInWhereTheTemplateFailsElse) {
  const std::string strict =
      "{% for m in messages %}{% for c in m.tool_calls or [] %}{% if c.id|length != 9 %}"
      "{{ raise_exception('nine') }}{% endif %}<{{ c.id }}>{% endfor %}{% if m.role == 'tool' %}"
      "[{{ m.tool_call_id + m.name }}]{% endif %}{% endfor %}";
  const std::string shown =
      render(strict, Json::array({user("go"), called("", "{}"), result("ok")}));
  EXPECT_EQ(shown, "<call00000>[call00000look]");
  Json without = called("", "{}");
  without["tool_calls"][0].erase("id");
  Json nameless = result("ok");
  nameless.erase("tool_call_id");
  EXPECT_EQ(render(strict, Json::array({user("go"), without, nameless})), shown);
  // Others keep what they have.
  const std::string lax =
      "{% for m in messages %}{% for c in m.tool_calls or [] %}<{{ c.id }}>{% endfor %}"
      "{% if m.role == 'tool' %}[{{ m.tool_call_id }}{{ m.name }}]{% endif %}{% endfor %}";
  EXPECT_EQ(
      render(lax, Json::array({user("go"), called("", "{}"), result("ok")})), "<call_1>[call_1]"
  );
  EXPECT_EQ(render(lax, Json::array({user("go"), without, nameless})), "<>[]");
}

TEST(ChatMessages, WhateverIsInThemNothingIsLost) {
  for (const Json& odd : {Json(7), Json("x"), Json::array({1}), Json{{"name", "n"}}}) {
    Json message = user("hi");
    message["tool_calls"] = odd;
    message["function_call"] = odd;
    EXPECT_NO_THROW(render("{{ messages[0].content }}", Json::array({message})));
    message["content"] = odd;
    EXPECT_NO_THROW(render("{{ messages|length }}", Json::array({message})));
    message["role"] = odd;
    EXPECT_NO_THROW(render("{{ messages|length }}", Json::array({message})));
  }
}

}  // namespace
}  // namespace saker::text
