// SPDX-License-Identifier: Apache-2.0

// The form of calls that a chat template shows. It renders an answer with calls, and tries which of
// the known formats reads them best. If none does, the differences to the known name and arguments
// tell the markers.

#include "saker/text/output/answer_collector.h"
#include "saker/text/output/call_reader.h"
#include "saker/text/output/find_format.h"
#include "saker/text/output/output_parser.h"
#include "saker/text/output/value_reader.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace saker::text {
namespace {

constexpr std::string_view kNames[] = {"look_up_place", "count_things"};
constexpr std::string_view kPlain = "plain words";

const Json& arguments() {
  static const Json kArguments = {{"place", "over there"}, {"count", 7}};
  return kArguments;
}

Json tools() {
  const Json parameters = {
      {"type", "object"},
      {"properties",
       {{"place", {{"type", "string"}, {"description", "a"}}},
        {"count", {{"type", "integer"}, {"description", "b"}}}}},
      {"required", {"place", "count"}},
  };
  Json list = Json::array();
  for (const std::string_view name : kNames) {
    const Json function = {{"name", name}, {"description", "c"}, {"parameters", parameters}};
    list.push_back({{"type", "function"}, {"function", function}});
  }
  return list;
}

// An answer as the template shows it, and the prompt before it.
struct Shown {
  std::string prompt;
  std::string answer;
};

std::optional<Shown> show(const ChatTemplate& chat, const Json& answer) {
  const Json question = {{"role", "user"}, {"content", "question"}};
  const auto prompt = chat.try_to_render(Json::array({question}), {.tools = tools()});
  const auto whole = chat.try_to_render(
      Json::array({question, answer}), {.tools = tools(), .add_generation_prompt = false}
  );
  if (!prompt || !whole) {
    return std::nullopt;
  }
  const auto parted = std::ranges::mismatch(*prompt, *whole);
  std::size_t size = static_cast<std::size_t>(parted.in2 - whole->begin());
  if (size < prompt->size()) {
    // The prompt ends with something else, which may share the beginning of a marker.
    const std::size_t marker = whole->find_last_of(">\n", size == 0 ? 0 : size - 1);
    size = marker == std::string::npos ? size : std::min(size, marker + 1);
  }
  return Shown{whole->substr(0, size), whole->substr(size)};
}

Json answer_with_calls(std::size_t count) {
  Json calls = Json::array();
  for (std::size_t i = 0; i < count; ++i) {
    calls.push_back({
        {"id", "a1B2c3D4" + std::to_string(i)},
        {"type", "function"},
        {"function", {{"name", kNames[i]}, {"arguments", arguments()}}},
    });
  }
  return {{"role", "assistant"}, {"content", ""}, {"tool_calls", calls}};
}

// The number of bytes that are not part of the calls; none unless all calls are read.
std::optional<std::size_t> rest_of(
    const OutputFormat& format, const Shown& shown, std::size_t count
) {
  OutputParser parser(format, shown.prompt, read_tools(tools()));
  AnswerCollector collector;
  for (const auto& events : {parser.push(shown.answer), parser.finish(AnswerEnd::kWhole)}) {
    for (const OutputEvent& event : events) {
      collector.add(event);
    }
  }
  const AnswerParts& parts = collector.parts();
  if (parts.tool_calls.size() != count) {
    return std::nullopt;
  }
  for (std::size_t i = 0; i < count; ++i) {
    const Json read = Json::parse(parts.tool_calls[i].arguments, nullptr, false);
    if (parts.tool_calls[i].name != kNames[i] || read != arguments()) {
      return std::nullopt;
    }
  }
  return parts.content.size() + parts.reasoning.size();
}

// Formats read more than they write. True if the calls are shown as this one writes them.
bool writes_so(const OutputFormat& format, std::string_view answer) {
  if (format.calls.empty() || format.calls.front().shape != CallShape::kObjects) {
    return true;
  }
  const CallFormat& call = format.calls.front();
  const bool is_python = answer.find(std::string(kNames[0]) + "(") != std::string::npos;
  return call.is_python == is_python &&
         (is_python || call.name_is_key ||
          answer.find('"' + call.arguments_key + '"') != std::string::npos);
}

// Formats with markers around the content are for templates that have them.
const OutputFormat* best_known(const Shown& shown, std::size_t count, std::string_view source) {
  const OutputFormat* best = nullptr;
  std::size_t least = 0;
  for (const OutputFormat& format : known_formats()) {
    const bool may_be = source.find(trimmed(format.content_open)) != std::string_view::npos &&
                        writes_so(format, shown.answer);
    const auto rest = may_be ? rest_of(format, shown, count) : std::nullopt;
    if (rest && (best == nullptr || *rest < least)) {
      best = &format;
      least = *rest;
    }
  }
  return best;
}

// The size of the value that begins the text; 0 if there is none.
std::size_t value_size(std::string_view text) {
  const ValueNotation notation;
  ValueReader reader(notation);
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto read = reader.feed(text[i], out);
    if (read != ValueReader::Reading::kMore) {
      return read == ValueReader::Reading::kDone ? i + 1 : 0;
    }
  }
  return 0;
}

// An object that has the name and the arguments as members.
std::optional<CallFormat> object_at(std::string_view text, std::size_t begin, std::size_t end) {
  const Json object = Json::parse(text.substr(begin, end - begin), nullptr, false);
  if (!object.is_object()) {
    return std::nullopt;
  }
  CallFormat format;
  format.name_key.clear();
  for (const auto& [key, value] : object.items()) {
    if (value == Json(kNames[0])) {
      format.name_key = key;
    } else if (value == arguments()) {
      format.arguments_key = key;
    }
  }
  if (format.name_key.empty()) {
    return std::nullopt;
  }
  std::string_view before = trimmed(text.substr(0, begin));
  std::string_view after = trimmed(text.substr(end));
  format.is_list = before.ends_with('[') && after.starts_with(']');
  if (format.is_list) {
    before = trimmed(before.substr(0, before.size() - 1));
    after = trimmed(after.substr(1));
    format.separator = ", ";
  }
  format.open = before;
  format.close = after;
  return format;
}

// The markers around the name and the arguments.
std::optional<CallFormat> form_of(std::string_view text) {
  std::size_t at = std::string_view::npos;
  std::size_t size = 0;
  for (const char* written :
       {R"({"place": "over there", "count": 7})", R"({"place":"over there","count":7})"}) {
    if (at == std::string_view::npos) {
      at = text.find(written);
      size = std::string_view(written).size();
    }
  }
  const std::size_t name = at == std::string_view::npos ? at : text.rfind(kNames[0], at);
  if (name == std::string_view::npos) {
    return std::nullopt;
  }
  for (std::size_t begin = text.rfind('{', name); begin != std::string_view::npos && begin < name;
       begin = begin == 0 ? std::string_view::npos : text.rfind('{', begin - 1)) {
    const std::size_t end = begin + value_size(text.substr(begin));
    if (auto format = end >= at + size ? object_at(text, begin, end) : std::nullopt) {
      return format;
    }
  }
  const std::size_t name_end = name + kNames[0].size();
  return CallFormat{
      .shape = CallShape::kNamed,
      .call_open = std::string(trimmed(text.substr(0, name))),
      .name_close = std::string(text.substr(name_end, at - name_end)),
      .call_close = std::string(trimmed(text.substr(at + size))),
  };
}

std::optional<OutputFormat> derived(const ChatTemplate& chat, const Shown& shown) {
  // What ends any answer is no part of a call.
  const auto plain = show(chat, {{"role", "assistant"}, {"content", kPlain}});
  std::string_view text = shown.answer;
  if (const auto at = plain ? plain->answer.find(kPlain) : std::string::npos;
      at != std::string::npos) {
    const std::string_view ending = std::string_view(plain->answer).substr(at + kPlain.size());
    text.remove_suffix(text.ends_with(ending) ? ending.size() : 0);
  }
  auto call = form_of(text);
  if (!call || (call->open.empty() && call->call_open.empty())) {
    return std::nullopt;
  }
  OutputFormat format = plain_format();
  format.name = "derived";
  format.calls = {std::move(*call)};
  return rest_of(format, shown, 1) ? std::optional(std::move(format)) : std::nullopt;
}

}  // namespace

std::optional<OutputFormat> format_of_template(const ChatTemplate& chat) {
  for (const std::size_t count : {std::size_t{2}, std::size_t{1}}) {
    const auto shown = show(chat, answer_with_calls(count));
    if (!shown) {
      continue;
    }
    if (const OutputFormat* known = best_known(*shown, count, chat.source())) {
      return *known;
    }
    if (count == 1) {
      return derived(chat, *shown);
    }
  }
  return std::nullopt;
}

}  // namespace saker::text
