// SPDX-License-Identifier: Apache-2.0
#pragma once

// Writes a call as a model would, to compare forms.

#include "saker/base/json/json.h"
#include "saker/text/output/output_format.h"

#include <string>
#include <string_view>

namespace saker::text {

// REQUIRES: `arguments` is an object.
std::string write_call(const CallFormat& format, std::string_view name, const Json& arguments);

// The name of a JSON value's type in attributes.
std::string_view json_type(const Json& value);

// `text` with each `mark` replaced.
std::string replaced(std::string text, std::string_view mark, std::string_view by);

}  // namespace saker::text
