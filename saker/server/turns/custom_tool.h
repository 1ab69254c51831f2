// SPDX-License-Identifier: Apache-2.0
#pragma once

// Tools whose input is a text instead of JSON. Models know functions alone, so that such a tool is a
// function with one argument, the text.

#include "saker/base/json/json.h"
#include "saker/server/turns/fields.h"

#include <string>

namespace saker::server {

// The function that stands for a custom tool, {"name", "description", "format"}. A regular expression
// of its format is a constraint; a Lark grammar is told to the model, and not enforced. OpenAI's
// chats have a grammar's members in another object. Throws a 400.
Json custom_tool(Fields& tool);

// Arguments of the function for this input, and the input of these arguments. Arguments that are
// cut off are returned as they are.
std::string custom_arguments(const std::string& input);
std::string custom_input(const std::string& arguments);

}  // namespace saker::server
