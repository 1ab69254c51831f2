// SPDX-License-Identifier: Apache-2.0
#include "saker/text/output/tool.h"

#include <algorithm>

namespace saker::text {

std::vector<Tool> read_tools(const Json& tools) {
  std::vector<Tool> read;
  if (!tools.is_array()) {
    return read;
  }
  for (const Json& entry : tools) {
    if (!entry.is_object()) {
      continue;
    }
    const auto nested = entry.find("function");
    const Json& function = nested != entry.end() && nested->is_object() ? *nested : entry;
    const auto name = function.find("name");
    if (name == function.end() || !name->is_string()) {
      continue;
    }
    Tool tool{.name = name->get<std::string>()};
    if (const auto found = function.find("parameters"); found != function.end()) {
      tool.parameters = *found;
    }
    const auto strict = function.find("strict");
    tool.is_strict = strict != function.end() && strict->is_boolean() && strict->get<bool>();
    read.push_back(std::move(tool));
  }
  return read;
}

const Tool* find_tool(const std::vector<Tool>& tools, std::string_view name) {
  const auto found = std::ranges::find(tools, name, &Tool::name);
  return found == tools.end() ? nullptr : &*found;
}

}  // namespace saker::text
