// SPDX-License-Identifier: Apache-2.0
// Any text as an answer in one of the known formats: nothing is thrown, pieces change nothing, and
// each closed call has a JSON object.
#include "saker/base/json/json.h"
#include "saker/base/utf8.h"
#include "saker/text/output/answer_collector.h"
#include "saker/text/output/output_parser.h"

#include "tests/fuzz/input.h"

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace {

using saker::Json;
namespace text = saker::text;

std::vector<text::Tool> tools() {
  const Json schema = {{"properties", {{"a", {{"type", "string"}}}, {"b", {{"type", "integer"}}}}}};
  return {{.name = "f", .parameters = schema}, {.name = "get"}};
}

text::AnswerParts parts_of(
    const text::OutputFormat& format, std::string_view answer, std::size_t step
) {
  text::OutputParser parser(format, "", tools());
  text::AnswerCollector parts;
  for (std::size_t at = 0; at < answer.size(); at += step) {
    for (const text::OutputEvent& event : parser.push(answer.substr(at, step))) {
      parts.add(event);
    }
  }
  for (const text::OutputEvent& event : parser.finish(text::AnswerEnd::kWhole)) {
    parts.add(event);
  }
  return parts.take();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  saker::fuzz::Input input(data, size);
  const auto& formats = text::known_formats();
  const text::OutputFormat& format = formats[input.byte() % formats.size()];
  const std::size_t step = 1 + input.byte() % 16;
  const std::string_view answer = input.rest();
  const text::AnswerParts whole = parts_of(format, answer, answer.size() + 1);
  saker::fuzz::expect(parts_of(format, answer, step) == whole);
  for (const text::ToolCall& call : whole.tool_calls) {
    saker::fuzz::expect(call.name == "f" || call.name == "get");
    // Bytes that are no UTF-8 stay as they are: a detokenizer writes none.
    const Json arguments = Json::parse(call.arguments, nullptr, false);
    saker::fuzz::expect(arguments.is_object() || saker::find_invalid_utf8(answer).has_value());
  }
  return 0;
}
