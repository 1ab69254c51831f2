// SPDX-License-Identifier: Apache-2.0
#pragma once

// Turns the hub's refusals into errors for people.

#include "saker/hub/http/fetcher.h"

#include <string_view>

namespace saker::hub {

// True if another attempt may succeed.
bool is_passing(int status);

// Throws kNotFound (401, 403, 404), kCapacity (429) or kUnsupported for a failed status. `what`
// names the thing that was asked for; `has_token` says that a token was sent.
[[noreturn]] void throw_response_error(
    const ResponseHead& head, std::string_view what, bool has_token
);

}  // namespace saker::hub
