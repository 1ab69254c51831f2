// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the hub's refusals mean for people.

#include "saker/hub/fetcher.h"

#include <string_view>

namespace saker::hub {

// Whether another attempt may succeed.
bool is_passing(int status);

// Throws kNotFound (401, 403, 404), kCapacity (429) or kUnsupported for a status that is no
// success. `what` is what was asked for, `has_token` whether a token went along.
[[noreturn]] void throw_response_error(
    const ResponseHead& head, std::string_view what, bool has_token
);

}  // namespace saker::hub
