// SPDX-License-Identifier: Apache-2.0
#pragma once

// Requests for the text between two others.

#include "saker/server/turns/served_model.h"

#include <string>
#include <string_view>

namespace saker::server {

// The prompt for it. Throws a 400 at `param` if the model has no tokens for that.
std::string between(
    std::string_view before,
    std::string_view after,
    const std::string& param,
    const ServedModel& model
);

}  // namespace saker::server
