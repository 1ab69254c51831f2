// SPDX-License-Identifier: Apache-2.0
#include "tests/text/output_answers.h"

#include <gtest/gtest.h>

#include <cstddef>

namespace saker::text {
namespace {

Json properties(std::initializer_list<std::pair<const char*, const char*>> types) {
  Json schema = {{"type", "object"}, {"properties", Json::object()}};
  for (const auto& [name, type] : types) {
    schema["properties"][name] = {{"type", type}};
  }
  return schema;
}

template <typename Piece>
bool join(OutputEvent& last, const OutputEvent& next) {
  auto* text = std::get_if<Piece>(&last);
  const auto* more = std::get_if<Piece>(&next);
  if (text == nullptr || more == nullptr) {
    return false;
  }
  text->text += more->text;
  return true;
}

}  // namespace

std::vector<Tool> test_tools() {
  return {
      {.name = "get_weather", .parameters = properties({{"city", "string"}, {"days", "integer"}})},
      {.name = "get_time", .parameters = properties({{"zone", "string"}})},
      {.name = "run_code",
       .parameters = properties(
           {{"code", "string"},
            {"label", "string"},
            {"flag", "boolean"},
            {"sizes", "array"},
            {"options", "object"}}
       )},
  };
}

std::vector<OutputEvent> joined(const std::vector<OutputEvent>& events) {
  std::vector<OutputEvent> all;
  for (const OutputEvent& event : events) {
    const bool is_more = !all.empty() && (join<ReasoningPiece>(all.back(), event) ||
                                          join<ContentPiece>(all.back(), event) ||
                                          join<CallArguments>(all.back(), event));
    if (!is_more) {
      all.push_back(event);
    }
  }
  return all;
}

std::vector<OutputEvent> events_of(
    const OutputFormat& format,
    const std::vector<std::string>& pieces,
    const std::vector<Tool>& tools,
    AnswerEnd end,
    std::string_view prompt
) {
  OutputParser parser(format, prompt, tools, {.id_seed = 7});
  std::vector<OutputEvent> events;
  for (const std::string& piece : pieces) {
    for (OutputEvent& event : parser.push(piece)) {
      events.push_back(std::move(event));
    }
  }
  for (OutputEvent& event : parser.finish(end)) {
    events.push_back(std::move(event));
  }
  return joined(events);
}

AnswerParts parse_pieces(
    const OutputFormat& format,
    const std::vector<std::string>& pieces,
    const std::vector<Tool>& tools,
    AnswerEnd end,
    std::string_view prompt
) {
  AnswerCollector collector;
  for (const OutputEvent& event : events_of(format, pieces, tools, end, prompt)) {
    collector.add(event);
  }
  return collector.parts();
}

AnswerParts parse_all_ways(
    const OutputFormat& format,
    std::string_view text,
    const std::vector<Tool>& tools,
    std::string_view prompt,
    AnswerEnd end
) {
  const std::vector<std::string> whole{std::string(text)};
  const auto events = events_of(format, whole, tools, end, prompt);
  for (std::size_t step = 1; step < 8; ++step) {
    std::vector<std::string> pieces;
    for (std::size_t at = 0; at < text.size(); at += step) {
      pieces.emplace_back(text.substr(at, step));
    }
    EXPECT_EQ(events_of(format, pieces, tools, end, prompt), events) << text << "\nby " << step;
  }
  int index = 0;
  for (const OutputEvent& event : events) {
    if (const auto* opened = std::get_if<CallOpened>(&event)) {
      EXPECT_EQ(opened->index, index++);
    }
  }
  const AnswerParts parts = parse_pieces(format, whole, tools, end, prompt);
  for (const ToolCall& call : parts.tool_calls) {
    EXPECT_TRUE(Json::parse(call.arguments, nullptr, false).is_object()) << call.arguments;
  }
  return parts;
}

std::string whole_characters(std::string text) {
  std::size_t begin = text.size();
  while (begin > 0 && (static_cast<unsigned char>(text[begin - 1]) & 0xC0U) == 0x80U) {
    --begin;
  }
  if (begin == 0) {
    return text;
  }
  const auto lead = static_cast<unsigned char>(text[begin - 1]);
  const std::size_t size = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  if (text.size() - (begin - 1) < size) {
    text.resize(begin - 1);
  }
  return text;
}

}  // namespace saker::text
