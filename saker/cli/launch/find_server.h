// SPDX-License-Identifier: Apache-2.0
#pragma once

// A server that may run already, asked by HTTP.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace saker::cli {

struct ServedName {
  std::string name;
  std::int64_t context = 0;  // In tokens; 0: unknown.
};

// The models of the server at an address such as "http://127.0.0.1:8080", as /v1/models lists them;
// none if nothing answers within two seconds or the answer is no such list. `key` may be empty.
std::optional<std::vector<ServedName>> served_names(
    const std::string& address, const std::string& key
);

}  // namespace saker::cli
