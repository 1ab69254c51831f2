// SPDX-License-Identifier: Apache-2.0
#pragma once

// Addresses of the web, taken apart by libcurl.

#include <optional>
#include <string>
#include <string_view>

namespace saker::hub {

// Who answers: two addresses of the same origin share secrets.
struct Origin {
  std::string scheme;  // "http" or "https".
  std::string host;    // In lower case.
  std::string port;    // Also where the address gives none.

  bool operator==(const Origin&) const = default;
};

// None for what is no http or https address, or holds a user's name.
std::optional<Origin> origin_of(std::string_view address);

// The address that `location`, absolute or relative, means in an answer from `base`. None as above.
std::optional<std::string> resolve_location(std::string_view base, std::string_view location);

// What follows `base`, path and query, in an address of the same origin, however both spell it.
// None for addresses elsewhere.
std::optional<std::string> path_below(std::string_view base, std::string_view address);

// The text with stars for a user's name and password, to be shown; also of what is no address.
std::string without_user(std::string_view address);

// For a part of a path or a query: all but letters, digits and "-._~" as %XX.
std::string percent_encode(std::string_view text);

}  // namespace saker::hub
