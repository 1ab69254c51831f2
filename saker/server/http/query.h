// SPDX-License-Identifier: Apache-2.0
#pragma once

// Percent-encoded texts, and the members of a query.

#include <optional>
#include <string>
#include <string_view>

namespace saker::server::http {

// The text without percent-encoding; none if it is not well formed.
std::optional<std::string> percent_decoded(std::string_view text);

// The value of the first member `name` of a query such as "a=1&b=x%2Fy"; none if it is absent or not
// well formed. A '+' is a space.
std::optional<std::string> query_value(std::string_view query, std::string_view name);

}  // namespace saker::server::http
