// SPDX-License-Identifier: Apache-2.0
#include "saker/text/message_parts.h"

#include "saker/base/error.h"

#include <algorithm>
#include <string_view>

namespace saker::text {
namespace {

// The member's text; empty if it is something else.
std::optional<std::string> text_member(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? std::optional(found->get<std::string>())
                                                     : std::nullopt;
}

std::string_view type_of(const Json& part) {
  const auto found = part.is_object() ? part.find("type") : part.end();
  return found != part.end() && found->is_string()
             ? std::string_view(found->get_ref<const std::string&>())
             : std::string_view();
}

// Lists of anything else are left to the template.
bool are_parts(const Json& content) {
  return content.is_array() && !content.empty() &&
         std::ranges::all_of(content, [](const Json& part) {
           return part.is_string() || !type_of(part).empty() || text_of_part(part).has_value();
         });
}

Json as_parts(const std::string& text) {
  return Json::array({Json{{"type", "text"}, {"text", text}}});
}

}  // namespace

std::optional<std::string> text_of_part(const Json& part) {
  if (part.is_string()) {
    return part.get<std::string>();
  }
  if (!part.is_object()) {
    return std::nullopt;
  }
  const std::string_view type = type_of(part);
  if (type == "refusal") {
    return text_member(part, "refusal");
  }
  const bool is_text =
      type.empty() || type == "text" || type == "input_text" || type == "output_text";
  return is_text ? text_member(part, "text") : std::nullopt;
}

std::optional<std::string> thoughts_of_part(const Json& part) {
  const std::string_view type = type_of(part);
  if (type != "thinking" && type != "reasoning") {
    return std::nullopt;
  }
  for (const char* key : {"thinking", "reasoning", "text"}) {
    if (auto text = text_member(part, key)) {
      return text;
    }
  }
  const auto inner = part.find("thinking");
  if (inner == part.end() || !are_parts(*inner)) {
    return std::nullopt;
  }
  std::string all;
  for (const Json& piece : *inner) {
    all += text_of_part(piece).value_or("");
  }
  return all;
}

MessageContent fit_content(const Json& content, Role role, const TemplateTraits& traits) {
  if (content.is_string() && !traits.takes_text(role)) {
    return {as_parts(content.get<std::string>()), {}};
  }
  if (content.is_array() && content.empty()) {
    return {traits.takes_text(role) ? Json("") : content, {}};
  }
  if (!are_parts(content)) {
    return {content, {}};
  }
  const auto is_text = [](const Json& part) { return text_of_part(part).has_value(); };
  if (!std::ranges::all_of(content, is_text) && traits.takes_parts(role)) {
    return {content, {}};
  }
  MessageContent fitted;
  std::string text;
  for (const Json& part : content) {
    const auto thoughts = thoughts_of_part(part);
    const auto said = text_of_part(part);
    require(
        thoughts || said,
        ErrorCode::kUnsupported,
        "messages: got a part of type {:?}, expected text: the chat template takes nothing else",
        type_of(part)
    );
    fitted.thoughts += thoughts.value_or("");
    text += said.value_or("");
  }
  fitted.content = traits.takes_text(role) ? Json(text) : as_parts(text);
  return fitted;
}

}  // namespace saker::text
