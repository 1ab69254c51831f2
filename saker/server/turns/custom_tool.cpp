// SPDX-License-Identifier: Apache-2.0
#include "saker/server/turns/custom_tool.h"

#include "saker/base/error.h"
#include "saker/base/json/json_numbers.h"
#include "saker/base/utf8.h"

#include <optional>

namespace saker::server {
namespace {

constexpr const char* kInput = "input";

// Adds the format to the function's description, or to the schema of its argument.
void add_format(Fields& tool, std::string& description, Json& function, Json& schema) {
  const Json* given = tool.object("format");
  if (given == nullptr) {
    return;
  }
  Fields format(*given, tool.path_of("format"));
  format.required("type");
  const std::string type = *format.text("type");
  if (type == "text") {
    return;
  }
  if (type != "grammar") {
    format.fail("type", "expected text or grammar, got " + quote(type));
  }
  const Json* nested = format.object("grammar");
  Fields grammar(
      nested == nullptr ? *given : *nested,
      nested == nullptr ? tool.path_of("format") : format.path_of("grammar")
  );
  grammar.required("syntax");
  grammar.required("definition");
  const std::string syntax = *grammar.text("syntax");
  const std::string definition = *grammar.text("definition");
  if (syntax == "regex") {
    schema["pattern"] = "^(?:" + definition + ")$";
    function["strict"] = true;
  } else if (syntax == "lark") {
    description += "\nThe input has to fit this Lark grammar:\n" + definition;
  } else {
    grammar.fail("syntax", "expected lark or regex, got " + quote(syntax));
  }
}

}  // namespace

Json custom_tool(Fields& tool) {
  tool.required("name");
  std::string description = tool.text("description").value_or("");
  Json schema = {{"type", "string"}};
  Json function = {{"name", *tool.text("name")}};
  add_format(tool, description, function, schema);
  function["description"] = description;
  function["parameters"] = {
      {"type", "object"},
      {"properties", {{kInput, std::move(schema)}}},
      {"required", Json::array({kInput})},
      {"additionalProperties", false},
  };
  return {{"type", "function"}, {"function", std::move(function)}};
}

std::string custom_arguments(const std::string& input) {
  return write_json({{kInput, input}});
}

std::string custom_input(const std::string& arguments) {
  try {
    const Json parsed = parse_json(arguments, "arguments");
    const auto found = parsed.is_object() ? parsed.find(kInput) : parsed.end();
    return found != parsed.end() && found->is_string() ? found->get<std::string>() : arguments;
  } catch (const Error&) {
    return arguments;
  }
}

}  // namespace saker::server
