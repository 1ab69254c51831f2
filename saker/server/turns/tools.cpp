// SPDX-License-Identifier: Apache-2.0
#include "saker/server/turns/tools.h"

#include "saker/base/utf8.h"
#include "saker/server/turns/api_error.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace saker::server {
namespace {

bool is_tool(const Json& tool, const std::string& name) {
  return tool.contains("function") && tool["function"].value("name", "") == name;
}

// The name in {"type": "function", "function": {"name"}}, or in Responses' form, {"type", "name"}.
std::string named_function(Fields& fields, const Json& given) {
  Fields choice(given, fields.path_of("tool_choice"));
  choice.required("type");
  const std::string type = *choice.text("type");
  if (type != "function" && type != "custom") {
    choice.fail("type", "expected function, custom or allowed_tools, got " + quote(type));
  }
  if (const Json* function = choice.object(type)) {
    Fields inner(*function, choice.path_of(type));
    inner.required("name");
    return *inner.text("name");
  }
  choice.required("name");
  return *choice.text("name");
}

std::string name_of(Fields& tool) {
  for (const std::string kind : {"function", "custom"}) {
    if (const Json* found = tool.object(kind)) {
      Fields inner(*found, tool.path_of(kind));
      return inner.text("name").value_or("");
    }
  }
  return tool.text("name").value_or("");
}

// {"type": "allowed_tools", "mode", "tools": […]}: the answer may call no other ones. OpenAI's chats
// have the members in another object.
void allow_tools(Fields& fields, const Json& given, engine::Request& request) {
  Fields outer(given, fields.path_of("tool_choice"));
  const Json* nested = outer.object("allowed_tools");
  Fields choice(nested == nullptr ? given : *nested, fields.path_of("tool_choice"));
  const std::string mode = choice.text("mode").value_or("auto");
  if (mode != "auto" && mode != "required") {
    choice.fail("mode", "expected auto or required, got " + quote(mode));
  }
  choice.required("tools");
  const Json& listed = *choice.list("tools");
  std::set<std::string> names;
  for (std::size_t i = 0; i < listed.size(); ++i) {
    Fields tool(listed[i], fmt::format("{}[{}]", choice.path_of("tools"), i));
    names.insert(name_of(tool));
  }
  Json allowed = Json::array();
  for (const Json& tool : *request.prompt.tools) {
    const auto function = tool.find("function");
    if (function != tool.end() && names.contains(function->value("name", ""))) {
      allowed.push_back(tool);
    }
  }
  if (allowed.empty()) {
    choice.fail("tools", "none of the tools is allowed");
  }
  request.prompt.tools = std::move(allowed);
  request.output.tool_choice.use =
      mode == "required" ? engine::ToolUse::kRequired : engine::ToolUse::kAuto;
}

}  // namespace

Json function_tool(Fields& tool, std::string_view schema) {
  tool.required("name");
  Json function = {{"name", *tool.text("name")}};
  if (const auto description = tool.text("description")) {
    function["description"] = *description;
  }
  const Json* given = tool.object(schema);
  function["parameters"] =
      given != nullptr ? *given : Json{{"type", "object"}, {"properties", Json::object()}};
  if (tool.flag("strict").value_or(false)) {
    function["strict"] = true;
  }
  return {{"type", "function"}, {"function", std::move(function)}};
}

void force_tool(const std::string& name, const std::string& param, engine::Request& request) {
  const Json& tools = *request.prompt.tools;
  const bool is_declared =
      std::ranges::any_of(tools, [&](const Json& tool) { return is_tool(tool, name); });
  if (!is_declared) {
    throw ApiError(400, fmt::format("{}: {} is none of the tools", param, quote(name)))
        .with_param(param);
  }
  request.output.tool_choice.use = engine::ToolUse::kNamed;
  request.output.tool_choice.name = name;
}

void read_tool_choice(Fields& fields, engine::Request& request) {
  const Json* given = fields.find("tool_choice");
  if (given == nullptr || *given == "auto") {
    return;
  }
  if (*given == "none") {
    request.prompt.tools.reset();
    return;
  }
  if (!given->is_object() && *given != "required") {
    fields.fail("tool_choice", "expected none, auto, required or a function");
  }
  if (!request.prompt.tools) {
    fields.fail("tool_choice", "there are no tools");
  }
  if (*given == "required") {
    request.output.tool_choice.use = engine::ToolUse::kRequired;
  } else if (given->value("type", Json()) == "allowed_tools") {
    allow_tools(fields, *given, request);
  } else {
    force_tool(named_function(fields, *given), fields.path_of("tool_choice"), request);
  }
}

}  // namespace saker::server
