// SPDX-License-Identifier: Apache-2.0
#include "saker/text/continued_message.h"

#include "saker/base/error.h"

#include <array>
#include <string_view>
#include <utility>

namespace saker::text {
namespace {

// Characters for private use (U+E0A1, U+E0A2) around a word: no text has it by chance.
constexpr std::string_view kMark = "\xEE\x82\xA1saker continues here\xEE\x82\xA2";
constexpr std::array<const char*, 3> kReasoning{"reasoning_content", "thinking", "reasoning"};

std::string* text_of(Json& value) {
  return value.is_string() && !value.get_ref<std::string&>().empty()
             ? &value.get_ref<std::string&>()
             : nullptr;
}

// The content's last text; null if there is none.
std::string* content_of(Json& message) {
  const auto content = message.find("content");
  if (content == message.end()) {
    return nullptr;
  }
  if (!content->is_array() || content->empty()) {
    return text_of(*content);
  }
  Json& part = content->back();
  const bool is_text = part.is_object() && part.value("type", Json()) == "text";
  return is_text && part.contains("text") ? text_of(part["text"]) : nullptr;
}

Json& checked_last(Json& messages) {
  require(
      messages.is_array() && !messages.empty() && messages.back().is_object() &&
          messages.back().value("role", Json()) == "assistant",
      ErrorCode::kInvalidArgument,
      "the last message is not the assistant's: there is no answer to continue"
  );
  Json& last = messages.back();
  const auto calls = last.find("tool_calls");
  require(
      calls == last.end() || calls->is_null() || calls->empty(),
      ErrorCode::kInvalidArgument,
      "the last message calls tools: it can't be continued"
  );
  return last;
}

// Calls `take` for each text that is continued.
template <typename Take>
Begun visit_continued(Json& messages, Take take) {
  Json& last = checked_last(messages);
  if (std::string* content = content_of(last)) {
    take(*content);
    return Begun::kContent;
  }
  const auto content = last.find("content");
  Begun begun = Begun::kNothing;
  // A list that ends with something else than text is not empty, but can't be continued.
  const bool is_bare =
      content == last.end() || content->empty() || (content->is_string() && *content == "");
  for (const char* name : kReasoning) {
    const auto found = last.find(name);
    std::string* thoughts = found == last.end() || !is_bare ? nullptr : text_of(*found);
    if (thoughts != nullptr) {
      take(*thoughts);
      begun = Begun::kReasoning;
    }
  }
  require(
      begun != Begun::kNothing,
      ErrorCode::kInvalidArgument,
      "the last message has no text that could be continued"
  );
  return begun;
}

}  // namespace

Begun continued_part(const Json& messages) {
  Json last = Json::array();
  if (messages.is_array() && !messages.empty()) {
    last.push_back(messages.back());
  }
  return visit_continued(last, [](const std::string&) {});
}

Json with_mark(const Json& messages) {
  Json marked = messages;
  visit_continued(marked, [](std::string& text) { text += kMark; });
  return marked;
}

std::string cut_at_mark(std::string prompt) {
  const std::size_t at = prompt.find(kMark);
  require(
      at != std::string::npos && prompt.find(kMark, at + 1) == std::string::npos,
      ErrorCode::kUnsupported,
      "the chat template does not show the last message where an answer could continue it"
  );
  prompt.resize(at);
  return prompt;
}

}  // namespace saker::text
