// SPDX-License-Identifier: Apache-2.0
#include "saker/server/turns/tools.h"

#include "saker/base/utf8.h"
#include "saker/server/turns/api_error.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace saker::server {
namespace {

bool is_tool(const Json& tool, const std::string& name) {
  return tool.contains("function") && tool["function"].value("name", "") == name;
}

// {"type": "function", "function": {"name": NAME}}, or Responses' form, {"type", "name"}.
std::string named_function(Fields& fields, const Json& given) {
  Fields choice(given, fields.path_of("tool_choice"));
  choice.required("type");
  if (const auto type = choice.text("type"); *type != "function") {
    choice.fail("type", "expected function, got " + quote(*type));
  }
  if (const Json* function = choice.object("function")) {
    Fields inner(*function, choice.path_of("function"));
    inner.required("name");
    return *inner.text("name");
  }
  choice.required("name");
  return *choice.text("name");
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
  } else {
    force_tool(named_function(fields, *given), fields.path_of("tool_choice"), request);
  }
}

}  // namespace saker::server
