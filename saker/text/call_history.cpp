// SPDX-License-Identifier: Apache-2.0
#include "saker/text/call_history.h"

#include "saker/base/error.h"
#include "saker/base/json/json_numbers.h"

#include <fmt/format.h>

#include <algorithm>

namespace saker::text {
namespace {

constexpr std::size_t kShortId = 9;

std::string text_at(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

// JSON as Python writes it: models were trained on tool calls in this form.
std::string spaced_json(const Json& value) {
  if (!value.is_structured()) {
    return write_json(value);
  }
  std::string text;
  for (const auto& [key, member] : value.items()) {
    text += text.empty() ? "" : ", ";
    text += value.is_object() ? Json(key).dump() + ": " : "";
    text += spaced_json(member);
  }
  return value.is_object() ? "{" + text + "}" : "[" + text + "]";
}

// The object in a JSON text; empty text means an empty object. Discarded if the text holds no
// object.
Json object_in(const std::string& text) {
  if (text.find_first_not_of(" \t\r\n") == std::string::npos) {
    return Json::object();
  }
  try {
    Json value = parse_json(text, "arguments");
    if (value.is_null()) {
      return Json::object();
    }
    return value.is_object() ? value : Json(Json::value_t::discarded);
  } catch (const Error&) {
    return Json(Json::value_t::discarded);
  }
}

Json fit_arguments(const Json& arguments, const CallForm& form) {
  if (form.arguments_are_text) {
    return arguments.is_string() ? arguments
           : arguments.is_null() ? Json("{}")
                                 : Json(spaced_json(arguments));
  }
  if (arguments.is_null()) {
    return Json::object();
  }
  if (!arguments.is_string()) {
    return arguments;
  }
  Json object = object_in(arguments.get_ref<const std::string&>());
  if (!object.is_discarded()) {
    return object;
  }
  // A model's own mistake, which it may have to see to correct it.
  return form.takes_text ? arguments : Json{{"arguments", arguments}};
}

bool is_short_id(const std::string& id) {
  return id.size() == kShortId && std::ranges::all_of(id, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
         });
}

}  // namespace

Json CallHistory::fit_calls(const Json& calls) {
  open_.clear();
  if (!calls.is_array() || !std::ranges::all_of(calls, &Json::is_object)) {
    return calls;
  }
  const CallForm form = traits_.call_form();
  Json fitted = calls;
  for (Json& call : fitted) {
    const auto nested = call.find("function");
    Json& function = nested != call.end() && nested->is_object() ? *nested : call;
    if (function.contains("name")) {
      const auto arguments = function.find("arguments");
      if (arguments == function.end()) {
        function["arguments"] = fit_arguments(nullptr, form);
      } else {
        *arguments = fit_arguments(*arguments, form);
      }
    }
    const std::string name = text_at(function, "name");
    fit_id(call);  // May relocate the call's members.
    open_.push_back({text_at(call, "id"), name});
  }
  return fitted;
}

void CallHistory::fit_id(Json& call) {
  const CallIds ids = traits_.call_ids();
  const std::string id = text_at(call, "id");
  if (ids == CallIds::kAsGiven || (ids == CallIds::kRequired && !id.empty())) {
    return;
  }
  call["id"] = id.empty() ? fmt::format("call{:05}", made_++ % 100'000) : short_id(id);
}

std::string CallHistory::short_id(const std::string& id) {
  if (is_short_id(id)) {
    return id;
  }
  const auto [entry, is_new] = short_ids_.try_emplace(id);
  if (is_new) {
    entry->second = fmt::format("call{:05}", made_++ % 100'000);
  }
  return entry->second;
}

// Finds the call by its id, else by its name, else takes the first.
CallHistory::Call CallHistory::take_open(const std::string& id, const std::string& name) {
  const auto found = std::ranges::find_if(open_, [&](const Call& call) {
    return id.empty() ? name.empty() || call.name == name : call.id == id;
  });
  if (found == open_.end()) {
    return {};
  }
  Call call = std::move(*found);
  open_.erase(found);
  return call;
}

void CallHistory::fit_result(Json& result) {
  const CallIds ids = traits_.call_ids();
  const std::string given = text_at(result, "tool_call_id");
  const std::string id = given.empty() || ids != CallIds::kNineCharacters ? given : short_id(given);
  const std::string name = text_at(result, "name");
  const Call call = take_open(id, name);
  if (ids != CallIds::kAsGiven && (!id.empty() || !call.id.empty())) {
    result["tool_call_id"] = id.empty() ? call.id : id;
  }
  if (name.empty() && !call.name.empty() && traits_.needs_tool_names()) {
    result["name"] = call.name;
  }
}

Json calls_of_function(const Json& function_call) {
  return Json::array({Json{{"type", "function"}, {"function", function_call}}});
}

}  // namespace saker::text
