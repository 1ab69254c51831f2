// SPDX-License-Identifier: Apache-2.0

// Answers of all formats (golden/answers.json), in several shapes and however they are cut.

#include "saker/base/json/json.h"
#include "saker/text/output/output_parser.h"

#include "tests/text/output_answers.h"
#include <gtest/gtest.h>

#include <filesystem>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace saker::text {
namespace {

struct Answer {
  std::string name;
  const OutputFormat* format;
  std::string one;
  std::string two;
  std::string tricky;
};

void PrintTo(const Answer& answer, std::ostream* out) {
  *out << answer.name;
}

const Json& golden() {
  static const Json kGolden =
      read_json_file(std::filesystem::path(SAKER_SOURCE_DIR) / "tests/text/golden/answers.json");
  return kGolden;
}

std::vector<Answer> answers() {
  std::vector<Answer> all;
  for (const Json& entry : golden().at("answers")) {
    all.push_back({
        entry.at("name"),
        known_format(entry.at("format").get<std::string>()),
        entry.at("one"),
        entry.at("two"),
        entry.at("tricky"),
    });
  }
  return all;
}

// The golden calls of these indexes, as name and arguments.
Json calls(std::initializer_list<std::size_t> indexes) {
  Json list = Json::array();
  for (const std::size_t index : indexes) {
    list.push_back(golden().at("calls").at(index));
  }
  return list;
}

Json calls_of(const AnswerParts& parts) {
  Json list = Json::array();
  for (const ToolCall& call : parts.tool_calls) {
    Json arguments = Json::parse(call.arguments, nullptr, false);
    list.push_back({{"name", call.name}, {"arguments", std::move(arguments)}});
  }
  return list;
}

bool is_bare(const Answer& answer) {
  return answer.one.front() == '{' || answer.one.front() == '[';
}

bool has_channels(const Answer& answer) {
  return answer.format->channels != ChannelUse::kNone;
}

class OutputFormats : public testing::TestWithParam<Answer> {
 protected:
  const OutputFormat& format() const { return *GetParam().format; }

  AnswerParts parse(std::string_view text) const { return parse_all_ways(format(), text); }
};

TEST_P(OutputFormats, OneCall) {
  const AnswerParts parts = parse(GetParam().one);
  EXPECT_EQ(calls_of(parts), calls({0}));
  EXPECT_EQ(parts.content, "");
  EXPECT_EQ(parts.reasoning, "");
}

TEST_P(OutputFormats, TwoCalls) {
  const AnswerParts parts = parse(GetParam().two);
  EXPECT_EQ(calls_of(parts), calls({0, 1}));
  EXPECT_EQ(parts.content, "");
  ASSERT_EQ(parts.tool_calls.size(), 2U);
  EXPECT_NE(parts.tool_calls[0].id, parts.tool_calls[1].id);
}

TEST_P(OutputFormats, TrickyArguments) {
  const AnswerParts parts = parse(GetParam().tricky);
  EXPECT_EQ(calls_of(parts), calls({2}));
  EXPECT_EQ(parts.content, "");
}

TEST_P(OutputFormats, NoCall) {
  if (has_channels(GetParam())) {
    return;
  }
  for (const auto* text : {"Hello.", " Hi {there} [1] <b> \n", "{\"answer\": 42}", "[1, 2]", ""}) {
    EXPECT_EQ(parse(text), (AnswerParts{.content = text})) << text;
  }
}

TEST_P(OutputFormats, TextAround) {
  if (is_bare(GetParam()) || has_channels(GetParam())) {
    return;
  }
  const AnswerParts parts = parse("Let me see.\n" + GetParam().two + "\nDone. \n");
  EXPECT_EQ(calls_of(parts), calls({0, 1}));
  EXPECT_EQ(parts.content, "Let me see.Done. \n");
}

TEST_P(OutputFormats, ReasoningBefore) {
  if (has_channels(GetParam())) {
    return;
  }
  const ReasoningMarkers& markers = format().reasoning.front();
  const AnswerParts parts =
      parse(markers.open + "\nHm, the weather.\n" + markers.close + "\n\n" + GetParam().one);
  EXPECT_EQ(calls_of(parts), calls({0}));
  EXPECT_EQ(parts.reasoning, "Hm, the weather.");
  EXPECT_EQ(parts.content, "");
}

TEST_P(OutputFormats, ACallWithinReasoning) {
  if (is_bare(GetParam()) || has_channels(GetParam())) {
    return;
  }
  const ReasoningMarkers& markers = format().reasoning.front();
  const AnswerParts parts =
      parse(markers.open + "Hm. " + GetParam().one + "\nOk." + markers.close + "Well.");
  EXPECT_EQ(calls_of(parts), calls({0}));
  EXPECT_EQ(parts.reasoning, "Hm. \nOk.");
  EXPECT_EQ(parts.content, "Well.");
}

TEST_P(OutputFormats, AnUnknownNameIsContent) {
  const std::string& text = GetParam().two;
  const std::vector<Tool> others = {{.name = "other"}};
  const AnswerParts parts = parse_all_ways(format(), text, others);
  EXPECT_EQ(parts, (AnswerParts{.content = parts.content}));
  if (!has_channels(GetParam())) {
    EXPECT_EQ(parts.content, text);
  }
}

TEST_P(OutputFormats, WithoutToolsACallIsContent) {
  if (has_channels(GetParam())) {
    return;
  }
  const AnswerParts parts = parse_all_ways(format(), GetParam().one, {});
  EXPECT_EQ(parts, (AnswerParts{.content = GetParam().one}));
}

// A call that was cut is not whole, and its markup is not content.
TEST_P(OutputFormats, CutAnywhere) {
  const std::string& text = GetParam().two;
  std::size_t most = 0;
  for (std::size_t size = 0; size < text.size(); ++size) {
    const std::string part = whole_characters(text.substr(0, size));
    const AnswerParts cut = parse_pieces(format(), {part}, test_tools(), AnswerEnd::kCut);
    const Json found = calls_of(cut);
    EXPECT_GE(found.size(), most) << part;
    most = found.size();
    EXPECT_LE(most, 2U);
    for (std::size_t i = 0; i < found.size(); ++i) {
      EXPECT_EQ(found[i], calls({0, 1})[i]) << part;
    }
    if (!is_bare(GetParam())) {
      EXPECT_LE(cut.content.size(), 80U) << part;  // The beginning of a marker at most.
    }
    // A whole answer loses nothing.
    const AnswerParts whole = parse_pieces(format(), {part}, test_tools(), AnswerEnd::kWhole);
    EXPECT_TRUE(
        whole.tool_calls.size() == 2 || !whole.content.empty() || most == whole.tool_calls.size() ||
        whole.tool_calls.size() == most + 1
    ) << part;
  }
}

INSTANTIATE_TEST_SUITE_P(
    All,
    OutputFormats,
    testing::ValuesIn(answers()),
    [](const testing::TestParamInfo<Answer>& answer) {
      std::string name = answer.param.name;
      for (char& c : name) {
        c = c == ' ' ? '_' : c;
      }
      return name;
    }
);

}  // namespace
}  // namespace saker::text
