// SPDX-License-Identifier: Apache-2.0
#include "saker/text/continued_message.h"

#include "saker/base/error.h"
#include "saker/text/chat_template.h"
#include "saker/text/output/output_parser.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <variant>

namespace saker::text {
namespace {

// As Qwen3's: reasoning and content between markers, trimmed.
constexpr const char* kTemplate =
    "{% for m in messages %}<|{{ m.role }}|>"
    "{% if m.reasoning_content %}<think>{{ m.reasoning_content | trim }}</think>{% endif %}"
    "{{ m.content | trim }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}";

Json conversation(Json last) {
  return Json::array({{{"role", "user"}, {"content", "Count"}}, std::move(last)});
}

std::string rendered(Json last) {
  return ChatTemplate(kTemplate).render(
      conversation(std::move(last)), {.tools = std::nullopt, .continues_last = true}
  );
}

TEST(ContinuedMessage, APromptEndsWithTheMessage) {
  EXPECT_EQ(
      rendered({{"role", "assistant"}, {"content", "one two"}}),
      "<|user|>Count<|end|><|assistant|>one two"
  );
  EXPECT_EQ(
      rendered({{"role", "assistant"}, {"content", "one "}}),
      "<|user|>Count<|end|><|assistant|>one "
  ) << "white space stays, though the template trims";
}

TEST(ContinuedMessage, TheLastPartOfAListIsContinued) {
  const Json parts =
      Json::array({{{"type", "text"}, {"text", "one"}}, {{"type", "text"}, {"text", " two"}}});
  EXPECT_TRUE(rendered({{"role", "assistant"}, {"content", parts}}).ends_with(" two"));
}

TEST(ContinuedMessage, ReasoningIsContinuedWithoutContent) {
  const Json content = Json::array({nullptr, "", Json::array()});
  for (const Json& none : content) {
    EXPECT_TRUE(rendered({{"role", "assistant"}, {"content", none}, {"reasoning", "Hm,"}})
                    .ends_with("<|assistant|><think>Hm,")
    ) << none;
  }
  EXPECT_TRUE(rendered({{"role", "assistant"}, {"content", "So"}, {"reasoning_content", "Hm,"}})
                  .ends_with("<think>Hm,</think>So"));
}

TEST(ContinuedMessage, OtherMessagesCannotBeContinued) {
  const Json calls = Json::array({{{"function", {{"name", "f"}, {"arguments", "{}"}}}}});
  const Json image = Json::array({{{"type", "image_url"}}});
  for (const Json& last :
       {Json{{"role", "user"}, {"content", "a"}},
        Json{{"role", "assistant"}, {"content", ""}},
        Json{{"role", "assistant"}},
        Json{{"role", "assistant"}, {"content", 5}},
        Json{{"role", "assistant"}, {"content", image}, {"reasoning", "Hm"}},
        Json{{"role", "assistant"}, {"content", "a"}, {"tool_calls", calls}}}) {
    EXPECT_THROW(rendered(last), Error) << last;
  }
  EXPECT_THROW(continued_part(Json::array()), Error);
  EXPECT_THROW(continued_part(Json::object()), Error);
}

TEST(ContinuedMessage, ATemplateHasToShowItOnce) {
  const Json last = {{"role", "assistant"}, {"content", "a"}};
  for (const char* source : {"nothing", "{{ messages[1].content }}{{ messages[1].content }}"}) {
    try {
      ChatTemplate(source).render(
          conversation(last), {.tools = std::nullopt, .continues_last = true}
      );
      ADD_FAILURE() << source;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
    }
  }
}

// The answer's parts, each with its name in front.
std::string parts(Begun begun, std::string_view answer, const OutputFormat& format) {
  OutputParser parser(format, "", {}, {.begun = begun});
  std::string text;
  for (const auto& events : {parser.push(answer), parser.finish(AnswerEnd::kWhole)}) {
    for (const OutputEvent& event : events) {
      if (const auto* thought = std::get_if<ReasoningPiece>(&event)) {
        text += "[" + thought->text + "]";
      } else if (const auto* piece = std::get_if<ContentPiece>(&event)) {
        text += piece->text;
      }
    }
  }
  return text;
}

TEST(ContinuedMessage, AnswersBeginInTheMidstOfTheirPart) {
  const OutputFormat& plain = plain_format();
  EXPECT_EQ(parts(Begun::kReasoning, " so.</think>\n\nYes", plain), "[ so.]Yes");
  EXPECT_EQ(parts(Begun::kContent, " two", plain), " two");
  EXPECT_EQ(parts(Begun::kContent, "<think>", plain), "<think>");
  EXPECT_EQ(parts(Begun::kNothing, "<think>a</think>b", plain), "[a]b");
}

TEST(ContinuedMessage, SoWithChannels) {
  OutputFormat channels;
  channels.channels = ChannelUse::kHarmony;
  EXPECT_EQ(
      parts(
          Begun::kReasoning, " so.<|end|><|start|>assistant<|channel|>final<|message|>Yes", channels
      ),
      "[ so.]Yes"
  );
  EXPECT_EQ(parts(Begun::kContent, " two", channels), " two");
}

}  // namespace
}  // namespace saker::text
