// SPDX-License-Identifier: Apache-2.0
#pragma once

// The kinds of JSON values that fields of a request take. Pure functions.

#include "saker/base/json/json.h"
#include "saker/cli/options/request_fields.h"

#include <string>
#include <string_view>

namespace saker::cli {

// JSON has one kind of number: 2.0 and 1e2 count as integers. Other values are unchanged.
Json as_whole(const Json& value);

// Converts the value to the kind's type, if it can.
Json in_kind(const Json& value, RequestField::Kind kind);
bool has_kind(const Json& value, RequestField::Kind kind);

// For messages: the value that was found, and the kind that was expected.
std::string describe_value(const Json& value, RequestField::Kind kind);
std::string_view kind_name(RequestField::Kind kind);

}  // namespace saker::cli
