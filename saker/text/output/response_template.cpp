// SPDX-License-Identifier: Apache-2.0

// `response_template` of tokenizer_config.json, as transformers reads it since 5.13: fields of an
// answer with literals or patterns where they begin and end. It is compared with calls that the
// known formats write, so that one of the machines reads it.

#include "saker/base/error.h"
#include "saker/text/output/call_reader.h"
#include "saker/text/output/call_writer.h"
#include "saker/text/output/find_format.h"
#include "saker/text/pattern.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace saker::text {
namespace {

std::vector<std::string> literals_of(const Json* value) {
  std::vector<std::string> literals;
  if (value == nullptr) {
    return literals;
  }
  for (const Json& entry : value->is_array() ? *value : Json::array({*value})) {
    if (entry.is_string()) {
      literals.push_back(entry.get<std::string>());
    }
  }
  return literals;
}

std::string text_of(const Json* value) {
  const auto literals = literals_of(value);
  return literals.empty() ? std::string() : literals.front();
}

bool matches(const std::string& pattern, std::string_view text) {
  try {
    return Pattern(pattern, "response_template").matches(text);
  } catch (const Error&) {
    return false;  // Patterns that look around.
  }
}

// True if the field begins where a call of the format does, and ends where it ends.
bool describes(const Json& field, const CallFormat& format) {
  const std::string call = write_call(format, "get_weather", {{"city", "Paris"}, {"days", 3}});
  const std::string_view text = trimmed(call);
  const auto any = [](const std::vector<std::string>& literals, const auto& holds) {
    return std::ranges::any_of(literals, [&](const std::string& literal) {
      return !trimmed(literal).empty() && holds(trimmed(literal));
    });
  };
  const std::string open = text_of(find_member(field, "open_pattern"));
  const std::string close = text_of(find_member(field, "close_pattern"));
  const bool opens = any(literals_of(find_member(field, "open")), [text](std::string_view literal) {
    return text.starts_with(literal);
  });
  const bool closes =
      any(literals_of(find_member(field, "close")),
          [text](std::string_view literal) { return text.ends_with(literal); });
  const bool has_close = find_member(field, "close") != nullptr || !close.empty();
  const std::string content = text_of(find_member(field, "content"));
  const bool fits = (content == "xml-inline") == (format.shape == CallShape::kTagged);
  return fits && (opens || (!open.empty() && matches(fmt::format("^(?:{})", open), text))) &&
         (!has_close || closes || (!close.empty() && matches(fmt::format("(?:{})$", close), text)));
}

// JSON with name and arguments between two literals.
std::optional<CallFormat> object_between_literals(const Json& field) {
  const std::string open = text_of(find_member(field, "open"));
  const std::string close = text_of(find_member(field, "close"));
  const bool is_json = text_of(find_member(field, "content")) == "json";
  if (trimmed(open).empty() || trimmed(close).empty() || !is_json) {
    return std::nullopt;
  }
  return CallFormat{.open = open, .close = close};
}

std::optional<OutputFormat> read(const Json& spec) {
  const Json* fields = find_member(spec, "fields");
  const Json* calls = fields == nullptr ? nullptr : find_member(*fields, "tool_calls");
  OutputFormat format = plain_format();
  if (calls != nullptr) {
    const auto& known = known_formats();
    // Formats without markers of content come first: others hold too.
    const auto fits = [&](bool has_markers) {
      return std::ranges::find_if(known, [&](const OutputFormat& other) {
        return !other.calls.empty() && other.content_open.empty() != has_markers &&
               describes(*calls, other.calls.front());
      });
    };
    auto found = fits(false);
    found = found == known.end() ? fits(true) : found;
    if (found != known.end()) {
      format = *found;
    } else if (auto between = object_between_literals(*calls)) {
      format.calls = {std::move(*between)};
    } else {
      return std::nullopt;
    }
  }
  format.name = "response_template";
  for (const char* name : {"thinking", "reasoning_content", "reasoning"}) {
    const Json* field = fields == nullptr ? nullptr : find_member(*fields, name);
    const std::string open = field == nullptr ? "" : text_of(find_member(*field, "open"));
    const std::string close = field == nullptr ? "" : text_of(find_member(*field, "close"));
    if (!trimmed(open).empty() && !trimmed(close).empty()) {
      format.reasoning.insert(
          format.reasoning.begin(), {std::string(trimmed(open)), std::string(trimmed(close))}
      );
    }
  }
  return format;
}

}  // namespace

std::optional<OutputFormat> format_of_response_template(const Json& response_template) {
  if (response_template.is_null()) {
    return std::nullopt;
  }
  const Json* version = find_member(response_template, "version");
  if (!response_template.is_object() || (version != nullptr && *version != 1)) {
    spdlog::info("response_template: got another version than 1, which is not read");
    return std::nullopt;
  }
  auto format = read(response_template);
  if (!format) {
    spdlog::info("response_template: its tool calls have a form that is not read");
  }
  return format;
}

}  // namespace saker::text
