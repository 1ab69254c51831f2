// SPDX-License-Identifier: Apache-2.0
#include "saker/text/output/output_parser.h"

#include "tests/text/output_answers.h"
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace saker::text {

static std::ostream& operator<<(std::ostream& out, const AnswerParts& parts) {
  out << "[" << parts.reasoning << "|" << parts.content;
  for (const ToolCall& call : parts.tool_calls) {
    out << "|" << call.name << call.arguments;
  }
  return out << "]";
}

namespace {

const OutputFormat& format(std::string_view name) {
  return *known_format(name);
}

AnswerParts split(std::string_view text, std::string_view prompt = "") {
  return parse_all_ways(plain_format(), text, {}, prompt);
}

AnswerParts parts(std::string reasoning, std::string content) {
  return {.reasoning = std::move(reasoning), .content = std::move(content)};
}

TEST(OutputParser, AnAnswerWithoutMarkersIsContent) {
  for (const char* text :
       {"", " ", "\n\nhello\n", "2 < 3", "<", "<thin", "<b>bold</b>", "</think>late", "a <think> b"
       }) {
    EXPECT_EQ(split(text), parts("", text)) << text;
  }
}

TEST(OutputParser, ThoughtsStandBeforeTheContent) {
  EXPECT_EQ(split("<think>\na b\n\nc\n</think>\n\nhello\n"), parts("a b\n\nc", "hello\n"));
  EXPECT_EQ(split("\n<think>a</think>hello"), parts("a", "hello"));
  EXPECT_EQ(split("<think>\n\n</think>\n\nhello"), parts("", "hello"));
  EXPECT_EQ(split("<think>never ends "), parts("never ends", ""));
  EXPECT_EQ(split("<think>a </thin"), parts("a </thin", ""));
  EXPECT_EQ(split("<think>a<</think>b</think>c"), parts("a<", "b</think>c"));
  EXPECT_EQ(split("<think>a<think>b</think>c"), parts("a<think>b", "c"));
}

TEST(OutputParser, ThePromptMayHaveBegunThoughts) {
  EXPECT_EQ(split("a\n</think>\n\nb", "<|assistant|>\n<think>\n"), parts("a", "b"));
  EXPECT_EQ(split("<think>a</think>b", "<think>\n"), parts("a", "b"));
  EXPECT_EQ(split("b", "<think>\n\n</think>\n\n"), parts("", "b"));
  EXPECT_EQ(split("b", "what is <think>?<|assistant|>"), parts("", "b"));
  EXPECT_EQ(split("cut", "<think>"), parts("cut", ""));
}

TEST(OutputParser, EachFormatEndsThoughtsWithItsOwnMarker) {
  EXPECT_EQ(split("[THINK]a</think>b[/THINK]c"), parts("a</think>b", "c"));
  EXPECT_EQ(split("<|channel>thought\na<channel|>b"), parts("a", "b"));
  EXPECT_EQ(
      split("<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>final<|message|>b"),
      parts("a", "b")
  );
  EXPECT_EQ(split("◁think▷a◁b◁/think▷c"), parts("a◁b", "c"));
}

TEST(OutputParser, MuchWhiteSpaceBeforeAMarkerIsContent) {
  const std::string text = std::string(1000, '\n') + "<think>a</think>b";
  EXPECT_EQ(split(text), parts("", text));
}

TEST(OutputParser, PartsOfContentMarkersAreDropped) {
  EXPECT_EQ(
      parse_all_ways(format("granite3"), "<think>a</think><response>b\n</response>"),
      parts("a", "b")
  );
  EXPECT_EQ(
      parse_all_ways(
          format("command_r7b"),
          "<|START_THINKING|>a<|END_THINKING|><|START_RESPONSE|>b<|END_RESPONSE|>"
      ),
      parts("a", "b")
  );
  EXPECT_EQ(
      parse_all_ways(
          format("kimi_k3"),
          "a<|close|>think<|sep|><|open|>response<|sep|>b<|close|>response<|sep|>",
          {},
          "<|open|>think<|sep|>"
      ),
      parts("a", "b")
  );
  EXPECT_EQ(parse_all_ways(format("functionary32"), ">>>all\nhello"), parts("", "hello"));
  EXPECT_EQ(parse_all_ways(format("functionary32"), "all\nhello", {}, "x>>>"), parts("", "hello"));
}

std::vector<OutputEvent> events(std::string_view name, const std::string& text, AnswerEnd end) {
  return events_of(format(name), {text}, test_tools(), end);
}

ToolCall only_call(std::string_view name, std::string_view text) {
  const AnswerParts answer = parse_all_ways(format(name), text);
  EXPECT_EQ(answer.tool_calls.size(), 1U) << answer;
  EXPECT_EQ(answer.content, "") << text;
  return answer.tool_calls.empty() ? ToolCall{} : answer.tool_calls.front();
}

TEST(OutputParser, ArgumentsStream) {
  OutputParser parser(format("hermes"), "", test_tools(), {.id_seed = 1});
  EXPECT_EQ(parser.push("<tool_call>\n{\"name\": \"get_time\"").size(), 1U);
  EXPECT_EQ(
      parser.push(", \"arguments\": {\"zone\": \"Eu"),
      (std::vector<OutputEvent>{CallArguments{0, "{\"zone\": \"Eu"}})
  );
  OutputParser tags(format("qwen3_coder"), "", test_tools(), {.id_seed = 1});
  EXPECT_EQ(tags.push("<tool_call>\n<function=get_time>\n").size(), 2U);
  EXPECT_EQ(
      tags.push("<parameter=zone>\nEurope/\"R\"\n"),
      (std::vector<OutputEvent>{CallArguments{0, "\"zone\": \"Europe/\\\"R\\\""}})
  );
}

TEST(OutputParser, JsonArgumentsPassUnchanged) {
  const std::string arguments = R"({"city" :"Pa\u0072is",  "days":3.50e+1 })";
  EXPECT_EQ(
      only_call(
          "hermes",
          R"(<tool_call>{"name": "get_weather", "arguments": )" + arguments + "}</tool_call>"
      )
          .arguments,
      arguments
  );
}

TEST(OutputParser, SlipsWithOneMeaningAreMended) {
  const auto hermes = [](const std::string& object) {
    return only_call("hermes", "<tool_call>" + object + "</tool_call>").arguments;
  };
  EXPECT_EQ(hermes("{'name': 'get_time', 'arguments': {'zone': 'a\"b'}}"), R"({"zone": "a\"b"})");
  EXPECT_EQ(hermes(R"({"name": "get_time", "arguments": {"zone": True,}})"), R"({"zone": true})");
  EXPECT_EQ(
      hermes("{\"name\": \"get_time\", \"arguments\": {\"zone\": \"a\nb\"}}"), R"({"zone": "a\nb"})"
  );
  EXPECT_EQ(
      hermes(R"({"name": "get_time", "arguments": {"zone": "\d\ud83dx"}})"),
      R"({"zone": "\\d\ufffdx"})"
  );
  EXPECT_EQ(hermes(R"({"name": "get_time", "arguments": "{\"zone\": 1}"})"), R"({"zone": 1})");
  EXPECT_EQ(
      hermes(R"({"arguments": {"zone": 1}, "id": "x", "name": "get_time"})"), R"({"zone": 1})"
  );
  EXPECT_EQ(hermes(R"({"name": "get_time", "arguments": {"zone": 1})"), R"({"zone": 1})");
  EXPECT_EQ(hermes(R"({"name": "get_time", "arguments": {"zone": 1}}})"), R"({"zone": 1})");
  EXPECT_EQ(hermes(R"({"name": "get_time"})"), "{}");
  EXPECT_EQ(hermes(R"({"name": "get_time", "arguments": null})"), "{}");
}

TEST(OutputParser, WhatIsNoCallIsContent) {
  for (const char* text : {
           "<tool_call>",
           "<tool_call>{}</tool_call>",
           "<tool_call>{\"name\": 1}</tool_call>",
           "<tool_call>{\"name\": \"get_thyme\", \"arguments\": {}}</tool_call>",
           "<tool_call>{\"name\": \"get_time",
           "<tool_call>[]</tool_call>",
           "a </tool_call> b",
           "Write <tool_call> and </tool_call> around it.",
       }) {
    EXPECT_EQ(parse_all_ways(format("hermes"), text), parts("", text)) << text;
  }
  // A second opening marker after one without a call.
  const AnswerParts twice = parse_all_ways(
      format("hermes"), R"(<tool_call><tool_call>{"name": "get_time", "arguments": {}}</tool_call>)"
  );
  EXPECT_EQ(twice.content, "<tool_call>");
  EXPECT_EQ(twice.tool_calls.size(), 1U);
}

// The call has been announced, so it stays open; nothing is lost.
TEST(OutputParser, ABrokenCallIsContentAsWell) {
  const std::string text =
      R"(<tool_call>{"name": "get_time", "arguments": {"zone": }}</tool_call>)";
  const AnswerParts answer = parse_all_ways(format("hermes"), text);
  EXPECT_EQ(answer, parts("", text));
  const auto all = events("hermes", text, AnswerEnd::kWhole);
  EXPECT_TRUE(std::ranges::none_of(all, [](const OutputEvent& event) {
    return std::holds_alternative<CallClosed>(event);
  }));
}

TEST(OutputParser, AnUnfinishedCall) {
  const std::string begun = R"(<tool_call>{"name": "get_time", "arguments": {"zone": "E)";
  // Cut by a limit: no content, no whole call.
  const auto cut = events("hermes", begun, AnswerEnd::kCut);
  ASSERT_EQ(cut.size(), 2U);
  EXPECT_EQ(cut[1], OutputEvent(CallArguments{0, "{\"zone\": \"E"}));
  // The model stopped: the text is content.
  EXPECT_EQ(parse_all_ways(format("hermes"), begun), parts("", begun));
  // Whole arguments are a call.
  EXPECT_EQ(only_call("hermes", begun + "\"}").arguments, "{\"zone\": \"E\"}");
  EXPECT_EQ(
      only_call("qwen3_coder", "<tool_call><function=get_time><parameter=zone>E</parameter>")
          .arguments,
      "{\"zone\": \"E\"}"
  );
  // No arguments are invented.
  const std::string bare = "<tool_call><function=get_time>";
  EXPECT_EQ(parse_all_ways(format("qwen3_coder"), bare), parts("", bare));
}

TEST(OutputParser, ClosersWithinArgumentsEndNothing) {
  const auto call = only_call(
      "hermes",
      R"(<tool_call>{"name": "get_time", "arguments": {"zone": "</tool_call></think>"}}</tool_call>)"
  );
  EXPECT_EQ(call.arguments, R"({"zone": "</tool_call></think>"})");
}

TEST(OutputParser, TagsAreTypedByTheSchema) {
  const Json schema = Json::parse(R"({"properties": {
    "text": {"type": "string"}, "count": {"type": "integer"}, "flag": {"type": ["boolean", "null"]},
    "either": {"anyOf": [{"type": "string"}, {"type": "null"}]}, "one": {"enum": ["a", "b"]},
    "linked": {"$ref": "#/$defs/list"}}, "$defs": {"list": {"type": "array"}}})");
  const std::vector<Tool> tools = {{.name = "f", .parameters = schema}};
  const auto argument = [&](const std::string& key, const std::string& value) {
    const std::string text = "<tool_call>\n<function=f>\n<parameter=" + key + ">\n" + value +
                             "\n</parameter>\n</function>\n</tool_call>";
    const AnswerParts answer = parse_all_ways(format("qwen3_coder"), text, tools);
    EXPECT_EQ(answer.tool_calls.size(), 1U) << text;
    return answer.tool_calls.empty() ? Json() : Json::parse(answer.tool_calls[0].arguments)[key];
  };
  EXPECT_EQ(argument("text", "007"), "007");
  EXPECT_EQ(argument("text", "true"), "true");
  EXPECT_EQ(argument("text", "\n&amp; <b>\n"), "\n&amp; <b>\n");
  EXPECT_EQ(argument("text", ""), "");
  EXPECT_EQ(argument("count", "7"), 7);
  EXPECT_EQ(argument("count", "seven"), "seven");
  EXPECT_EQ(argument("flag", "True"), true);
  EXPECT_EQ(argument("flag", "null"), nullptr);
  EXPECT_EQ(argument("either", "null"), nullptr);
  EXPECT_EQ(argument("either", "12"), "12");
  EXPECT_EQ(argument("one", "a"), "a");
  EXPECT_EQ(argument("linked", "[1, 2]"), Json::parse("[1, 2]"));
  EXPECT_EQ(argument("unknown", "{\"a\": 1}"), Json::parse("{\"a\": 1}"));
  EXPECT_EQ(argument("unknown", "word"), "word");
}

TEST(OutputParser, Channels) {
  const auto answer = [](std::string_view text) { return parse_all_ways(format("gpt_oss"), text); };
  EXPECT_EQ(
      answer(
          "<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>analysis<|message|>b"
          "<|end|><|start|>assistant<|channel|>commentary<|message|>c<|end|><|start|>assistant"
          "<|channel|>final<|message|>d"
      ),
      parts("a\nb", "cd")
  );
  const AnswerParts calls = answer(
      "<|channel|>analysis<|message|>a<|end|><|start|>assistant to=functions.get_time"
      "<|channel|>commentary json<|message|>{\"zone\": 1}"
  );
  EXPECT_EQ(calls.reasoning, "a");
  ASSERT_EQ(calls.tool_calls.size(), 1U);
  EXPECT_EQ(calls.tool_calls[0].arguments, "{\"zone\": 1}");
  // Broken headers lose nothing.
  EXPECT_EQ(answer("hello"), parts("", "hello"));
  EXPECT_EQ(answer("<|channel|>final"), parts("", "<|channel|>final"));
  EXPECT_EQ(
      answer("<|channel|>commentary to=functions.other<|message|>{}"),
      parts("", "<|channel|>commentary to=functions.other<|message|>{}")
  );
  const std::string broken = "<|channel|>commentary to=functions.get_time<|message|>{\"zone\": ?";
  EXPECT_EQ(answer(broken), parts("", broken));
}

TEST(OutputParser, IdsOfModelsAreKeptIfTheyAreLong) {
  EXPECT_EQ(only_call("mistral", "[TOOL_CALLS]get_time[CALL_ID]a1B2c3D4e[ARGS]{}").id, "a1B2c3D4e");
  EXPECT_EQ(
      only_call(
          "kimi_k2",
          "<|tool_calls_section_begin|><|tool_call_begin|>functions.get_time:4"
          "<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|>"
      )
          .id,
      "functions.get_time:4"
  );
  const ToolCall call = only_call(
      "command_r7b",
      R"(<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "get_time", "parameters": {}}]<|END_ACTION|>)"
  );
  EXPECT_TRUE(call.id.starts_with("call_")) << call.id;
}

TEST(OutputParser, BuiltInCallsOfLlama) {
  EXPECT_EQ(
      only_call("llama3", "<|python_tag|>get_time.call(zone=\"a\")").arguments, "{\"zone\": \"a\"}"
  );
}

TEST(OutputParser, OneCallOrNone) {
  const std::string two =
      R"([TOOL_CALLS]get_time[ARGS]{"zone": 1}[TOOL_CALLS]get_time[ARGS]{"zone": 2})";
  OutputParser one(format("mistral"), "", test_tools(), {.calls = CallsRead::kOne});
  AnswerCollector collector;
  for (const OutputEvent& event : one.push(two.substr(0, two.size() / 2))) {
    collector.add(event);
  }
  EXPECT_TRUE(one.is_complete());
  EXPECT_EQ(collector.parts().tool_calls.size(), 1U);
  OutputParser none(format("mistral"), "", test_tools(), {.calls = CallsRead::kNone});
  EXPECT_EQ(none.push(two), (std::vector<OutputEvent>{ContentPiece{two}}));
}

TEST(OutputParser, TellsIfItThinks) {
  OutputParser parser(plain_format(), "");
  EXPECT_FALSE(parser.is_thinking());
  parser.push("<think>a");
  EXPECT_TRUE(parser.is_thinking());
  EXPECT_TRUE(parser.is_before_content());
  parser.push("</think>");
  EXPECT_FALSE(parser.is_thinking());
  EXPECT_FALSE(parser.is_before_content());
  OutputParser channels(plain_format(), "");
  channels.push("<|channel|>analysis<|message|>a<|end|>");
  EXPECT_FALSE(channels.is_thinking());
  EXPECT_TRUE(channels.is_before_content());
}

// Hostile repetition costs no more than its length.
TEST(OutputParser, BeginningsThatFailTakeLinearTime) {
  std::string text;
  for (int i = 0; i < 20'000; ++i) {
    text += R"(<tool_call>{"arguments": {"a": ")";
  }
  EXPECT_EQ(parse_pieces(format("hermes"), {text}, test_tools(), AnswerEnd::kWhole).content, text);
}

// Random answers of words that formats are made of.
RC_GTEST_PROP(OutputParser, PiecesChangeNothing, ()) {
  const auto& formats = known_formats();
  const std::size_t index = *rc::gen::inRange<std::size_t>(0, formats.size());
  const OutputFormat& chosen = formats[index];
  std::vector<std::string> words = {
      " ",
      "\n",
      "a",
      "{",
      "}",
      "[",
      "]",
      "\"",
      "'",
      ":",
      ",",
      "\\",
      "(",
      ")",
      "=",
      "get_time",
      "zone",
      "\"name\": \"get_time\"",
      "\"arguments\": ",
      "{\"zone\": 1}",
      "get_time(zone=1)",
      "<think>",
      "</think>",
      "é",
      "◁think▷",
      "json",
      "12",
      "true",
      "<|channel|>",
      "<|message|>",
      "<|end|>",
      " to=functions.get_time",
      "<|start|>assistant"
  };
  for (const CallFormat& call : chosen.calls) {
    for (const std::string& word :
         {call.open,
          call.close,
          call.call_open,
          call.name_close,
          call.call_close,
          call.key_open,
          call.key_close,
          call.value_open,
          call.value_close,
          call.quote,
          call.id_open}) {
      words.push_back(word);
      words.push_back(word.substr(0, word.size() / 2));
    }
  }
  const auto pieces = *rc::gen::container<std::vector<std::string>>(rc::gen::elementOf(words));
  const auto prompt = *rc::gen::element<std::string>("", "<think>\n", "[THINK]", "hello");
  const auto end = *rc::gen::element(AnswerEnd::kWhole, AnswerEnd::kCut);
  std::string text;
  for (const std::string& piece : pieces) {
    text += piece;
  }
  std::vector<std::string> bytes;
  for (const char byte : text) {
    bytes.emplace_back(1, byte);
  }
  const auto tools = test_tools();
  const auto whole = events_of(chosen, {text}, tools, end, prompt);
  RC_ASSERT(events_of(chosen, pieces, tools, end, prompt) == whole);
  RC_ASSERT(events_of(chosen, bytes, tools, end, prompt) == whole);
  AnswerCollector collector;
  for (const OutputEvent& event : whole) {
    collector.add(event);
  }
  for (const ToolCall& call : collector.parts().tool_calls) {
    RC_ASSERT(Json::parse(call.arguments, nullptr, false).is_object());
    RC_ASSERT(find_tool(tools, call.name) != nullptr);
  }
}

}  // namespace
}  // namespace saker::text
