// SPDX-License-Identifier: Apache-2.0
#pragma once

// Tools that a request declares, in the form of OpenAI's API. Plain values.

#include "saker/base/json/json.h"

#include <string>
#include <string_view>
#include <vector>

namespace saker::text {

// A function that a model may call.
struct Tool {
  std::string name = {};
  Json parameters = nullptr;  // A JSON schema; null if none was declared.
  bool is_strict = false;     // Arguments have to fit the schema.
};

// Reads [{"type": "function", "function": {"name", "parameters", "strict"}}, ...], or the functions
// alone. Entries without a name are left out: a chat template may take other forms.
std::vector<Tool> read_tools(const Json& tools);

// The tool of this name; null without one.
const Tool* find_tool(const std::vector<Tool>& tools, std::string_view name);

}  // namespace saker::text
