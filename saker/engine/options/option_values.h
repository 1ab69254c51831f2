// SPDX-License-Identifier: Apache-2.0
#pragma once

// The kinds of JSON values that options take. Pure functions.

#include "saker/base/json/json.h"
#include "saker/engine/options/request_option.h"

#include <string>
#include <string_view>

namespace saker::engine {

// JSON has one kind of number: 2.0 and 1e2 count as integers. Other values are unchanged.
Json as_whole(const Json& value);

// Converts the value to the kind's type, if it can.
Json in_kind(const Json& value, OptionKind kind);
bool has_kind(const Json& value, OptionKind kind);

// For messages: the value that was found, and the kind that was expected.
std::string describe_value(const Json& value, OptionKind kind);
std::string_view kind_name(OptionKind kind);

}  // namespace saker::engine
