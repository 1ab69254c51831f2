// SPDX-License-Identifier: Apache-2.0
#include "saker/server/turns/collected_answer.h"

#include "saker/base/error.h"

#include <variant>

namespace saker::server {

void CollectedAnswer::add(const engine::Event& event) {
  if (const auto* thought = std::get_if<text::ReasoningPiece>(&event.what)) {
    reasoning += thought->text;
  } else if (const auto* piece = std::get_if<text::ContentPiece>(&event.what)) {
    content += piece->text;
  } else if (const auto* call = std::get_if<text::CallOpened>(&event.what)) {
    calls[call->index] = {call->id, call->name, {}};
  } else if (const auto* more = std::get_if<text::CallArguments>(&event.what)) {
    calls[more->index].arguments += more->text;
  } else if (const auto* end = std::get_if<engine::End>(&event.what)) {
    result = end->result;
  }
}

Json arguments_object(const std::string& text) {
  if (text.empty()) {
    return Json::object();
  }
  try {
    Json parsed = parse_json(text, "arguments");
    if (parsed.is_object()) {
      return parsed;
    }
  } catch (const Error&) {  // A model can write anything.
  }
  return {{"arguments", text}};
}

}  // namespace saker::server
