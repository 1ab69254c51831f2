// SPDX-License-Identifier: Apache-2.0
#pragma once

// Parses web addresses with libcurl.

#include <optional>
#include <string>
#include <string_view>

namespace saker::hub {

// Two addresses of the same origin share secrets.
struct Origin {
  std::string scheme;  // "http" or "https".
  std::string host;    // In lower case.
  std::string port;    // Set even if the address gives none.

  bool operator==(const Origin&) const = default;
};

// Empty unless it is an http or https address without a user's name.
std::optional<Origin> origin_of(std::string_view address);

// The address that `location`, absolute or relative, means in an answer from `base`. Empty as
// above.
std::optional<std::string> resolve_location(std::string_view base, std::string_view location);

// The path and query of `address` below `base`, however both spell the origin. Empty if the address
// is elsewhere.
std::optional<std::string> path_below(std::string_view base, std::string_view address);

// The text with a user's name and password starred out, for display; works for any text.
std::string without_user(std::string_view address);

// For a part of a path or query: all but letters, digits and "-._~" becomes %XX.
std::string percent_encode(std::string_view text);

}  // namespace saker::hub
