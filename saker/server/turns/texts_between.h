// SPDX-License-Identifier: Apache-2.0
#pragma once

// Requests for the text between two others.

#include "saker/server/turns/served_model.h"
#include "saker/text/fill_in_middle.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace saker::server {

// The tokens of the prompt for it, with other texts before it. Throws a 400 at `param` if the model has no tokens for that.
std::vector<std::int32_t> between(
    std::string_view before,
    std::string_view after,
    const std::string& param,
    const ServedModel& model,
    std::span<const text::FileText> files = {}
);

}  // namespace saker::server
