// SPDX-License-Identifier: Apache-2.0
#pragma once

// Sets options of a request from JSON values. Threading: pure functions.

#include "saker/base/json/json.h"
#include "saker/engine/options/request_option.h"
#include "saker/engine/request.h"

#include <string_view>

namespace saker::engine {

// Sets every member of `record` that is an option of records or a prompt ("prompt", "tokens",
// "messages"). "id" is skipped, null counts as absent, and whole numbers may be written as floats.
// Throws kInvalidArgument, naming the key, for unknown keys and wrong types, and if two names of an
// option have different values.
void apply_record(const Json& record, Request& request);

// Sets one option. Throws kInvalidArgument, with `key` or the option's name in front, for values of
// another kind and for values that no model takes.
void apply_option(
    const RequestOption& option, std::string_view key, const Json& value, Request& request
);

// Throws kInvalidArgument, with the option's name in front, for options that no model takes.
void check_request(const Request& request);

}  // namespace saker::engine
