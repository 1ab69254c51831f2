// SPDX-License-Identifier: Apache-2.0
#pragma once

// The tools that a request declares, and the calls that its answer may or has to make.

#include "saker/engine/request.h"
#include "saker/server/turns/fields.h"

#include <string>
#include <string_view>

namespace saker::server {

// A flat declaration, {"name", "description", SCHEMA}, in the form that chat templates take. Throws
// a 400 for members of other kinds, or without a name.
Json function_tool(Fields& tool, std::string_view schema);

// The member "tool_choice" as OpenAI's APIs have it: "none", "auto", "required", or an object that
// names a function. Throws a 400 for another one, and for a choice without tools.
void read_tool_choice(Fields& fields, engine::Request& request);

// The answer has to call this tool. Throws a 400 at `param` if the request does not declare it.
void force_tool(const std::string& name, const std::string& param, engine::Request& request);

}  // namespace saker::server
