// SPDX-License-Identifier: Apache-2.0
#pragma once

// Token ids as people type them.

#include <cstdint>
#include <string_view>
#include <vector>

namespace saker::cli {

// Parses "1,2,3", the value of `flag`, as token ids; throws kInvalidArgument.
std::vector<std::int32_t> parse_token_list(std::string_view flag, std::string_view text);

}  // namespace saker::cli
